-- purpose: how far a window has come, and whether a live run has it (the database's clock)
-- index: redrive_windows primary key
SELECT mark_us, until_us, holder, held_until_ms > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint), batch, opened_at_ms
FROM redrive_windows WHERE window_name = :window;
