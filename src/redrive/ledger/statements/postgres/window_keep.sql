-- purpose: the run goes on: its hold ends later (the database's clock)
-- fenced by: the holder
-- index: redrive_windows primary key
UPDATE redrive_windows SET held_until_ms = CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) + :hold_ms, updated_at_ms = :now_ms
WHERE window_name = :window AND mark_us = :start_us AND until_us = :end_us AND holder = :holder;
