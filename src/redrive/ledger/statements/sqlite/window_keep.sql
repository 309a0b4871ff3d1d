-- purpose: the run goes on: its hold ends later (the database's clock)
-- fenced by: the holder
-- index: redrive_windows primary key
UPDATE redrive_windows SET held_until_ms = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + :hold_ms, updated_at_ms = :now_ms
WHERE window_name = :window AND mark_us = :start_us AND until_us = :end_us AND holder = :holder;
