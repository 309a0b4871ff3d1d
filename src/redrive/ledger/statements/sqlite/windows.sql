-- purpose: a page of the windows, in the order of their names' bytes, and whether a live run has them
-- index: redrive_windows primary key
SELECT window_name, mark_us, until_us, holder, held_until_ms > CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), batch, opened_at_ms, completed_at_ms
FROM redrive_windows WHERE window_name > :after
ORDER BY window_name
LIMIT :limit;
