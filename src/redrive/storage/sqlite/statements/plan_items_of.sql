-- purpose: a page of a plan's members of one outcome
-- index: items_by_outcome
SELECT plan, n, message_id, redrive_count, job_key, died_of, outcome, sent_ms, finished_ms, failures, failed_ms, returned, detail
FROM plan_items INDEXED BY items_by_outcome WHERE plan = ? AND outcome = ? AND n > ? ORDER BY n LIMIT ?
