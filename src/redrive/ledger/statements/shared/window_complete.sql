-- purpose: the window is completed by the run or the batch that has it, in the transaction of the work: the mark moves; touches nothing when another has it
-- fenced by: the holder or the batch, of which the other is null; the mark and the cut that it took
-- index: redrive_windows primary key, redrive_windows_done primary key
UPDATE redrive_windows SET completed_at_ms = :now_ms, updated_at_ms = :now_ms
WHERE window_name = :window AND mark_us = :start_us AND until_us = :end_us AND (holder = :holder OR batch = :batch);
INSERT INTO redrive_windows_done (window_name, start_us, end_us, batch, opened_at_ms, completed_at_ms)
SELECT window_name, mark_us, until_us, batch, opened_at_ms, completed_at_ms FROM redrive_windows
WHERE window_name = :window AND mark_us = :start_us AND until_us = :end_us AND (holder = :holder OR batch = :batch);
UPDATE redrive_windows SET
    mark_us = until_us, until_us = NULL, holder = NULL, held_until_ms = NULL, batch = NULL, opened_at_ms = NULL
WHERE window_name = :window AND mark_us = :start_us AND until_us = :end_us AND (holder = :holder OR batch = :batch);
