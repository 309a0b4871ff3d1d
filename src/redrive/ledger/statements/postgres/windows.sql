-- purpose: a page of the windows, in the order of their names' bytes, and whether a live run has them
-- index: redrive_windows primary key
SELECT window_name, mark_us, until_us, holder, held_until_ms > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint), batch, opened_at_ms, completed_at_ms
FROM redrive_windows WHERE window_name > :after
ORDER BY window_name
LIMIT :limit;
