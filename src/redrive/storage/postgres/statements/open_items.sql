-- purpose: members that were sent, of the plans that sent them, oldest plan first
-- index: items_by_message
SELECT plan, n, message_id::text, redrive_count, job_key, died_of, outcome, sent_ms, finished_ms, failures, failed_ms, returned, detail
FROM plan_items WHERE message_id = ANY ($1::uuid[]) AND outcome IN ('sent', 'dead_again') ORDER BY plan
