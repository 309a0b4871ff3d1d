-- purpose: a member of a plan
INSERT INTO plan_items (plan, n, message_id, redrive_count, job_key, died_of, outcome, sent_ms, finished_ms, failures, failed_ms, returned, detail)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
