-- purpose: a new window: nothing before its first start is completed
-- index: redrive_windows primary key
INSERT INTO redrive_windows (window_name, mark_us, updated_at_ms) VALUES (:window, :start_us, :now_ms)
ON DUPLICATE KEY UPDATE window_name = redrive_windows.window_name;
