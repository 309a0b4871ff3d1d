-- purpose: the batch completes the window from now on, and holds it until then
-- fenced by: the holder
-- index: redrive_windows primary key
UPDATE redrive_windows SET batch = :batch, holder = NULL, held_until_ms = NULL, updated_at_ms = :now_ms
WHERE window_name = :window AND mark_us = :start_us AND until_us = :end_us AND holder = :holder;
