-- purpose: members of a plan by message id
-- index: items_by_member
SELECT plan, n, message_id, redrive_count, job_key, died_of, outcome, sent_ms, finished_ms, failures, failed_ms, returned, detail
FROM plan_items INDEXED BY items_by_member WHERE plan = ? AND message_id IN (SELECT value FROM json_each(?))
