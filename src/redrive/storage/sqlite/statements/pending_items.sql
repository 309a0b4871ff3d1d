-- purpose: members whose turn has not come, in order
-- index: pending_items
SELECT plan, n, message_id, redrive_count, job_key, died_of, outcome, sent_ms, finished_ms, failures, failed_ms, returned, detail
FROM plan_items INDEXED BY pending_items WHERE plan = ? AND n >= ? AND outcome = 'pending' ORDER BY n LIMIT ?
