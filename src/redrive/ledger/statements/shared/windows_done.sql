-- purpose: the last completed windows of a name, newest first
-- index: redrive_windows_done primary key
SELECT window_name, start_us, end_us, batch, opened_at_ms, completed_at_ms
FROM redrive_windows_done WHERE window_name = :window AND start_us < :before_us
ORDER BY start_us DESC
LIMIT :limit;
