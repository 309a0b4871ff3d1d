-- purpose: a page of a plan's members
SELECT plan, n, message_id, redrive_count, job_key, died_of, outcome, sent_ms, finished_ms, failures, failed_ms, returned, detail
FROM plan_items WHERE plan = ? AND n > ? ORDER BY n LIMIT ?
