-- purpose: the run gives the window up, which stays open: the next one resumes it at once
-- fenced by: the holder
-- index: redrive_windows primary key
UPDATE redrive_windows SET holder = NULL, held_until_ms = NULL, updated_at_ms = :now_ms
WHERE window_name = :window AND mark_us = :start_us AND until_us = :end_us AND holder = :holder;
