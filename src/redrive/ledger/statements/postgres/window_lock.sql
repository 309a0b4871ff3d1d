-- purpose: as window_get, for one who wants to take it; no row when another transaction has it
-- fenced by: SKIP LOCKED
-- index: redrive_windows primary key
SELECT mark_us, until_us, holder, held_until_ms > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint), batch, opened_at_ms
FROM redrive_windows WHERE window_name = :window
FOR UPDATE SKIP LOCKED;
