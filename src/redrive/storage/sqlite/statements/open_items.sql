-- purpose: members that were sent, of the plans that sent them, oldest plan first
-- index: items_by_message
SELECT plan, n, message_id, redrive_count, job_key, died_of, outcome, sent_ms, finished_ms, failures, failed_ms, returned, detail
FROM plan_items INDEXED BY items_by_message
WHERE message_id IN (SELECT value FROM json_each(?)) AND outcome IN ('sent', 'dead_again') ORDER BY plan
