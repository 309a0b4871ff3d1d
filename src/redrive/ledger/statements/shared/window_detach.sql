-- purpose: a cancelled batch gives its window up, which stays open: the next run resumes it
-- index: redrive_windows primary key
UPDATE redrive_windows SET batch = NULL, updated_at_ms = :now_ms
WHERE window_name = :window AND batch = :batch;
