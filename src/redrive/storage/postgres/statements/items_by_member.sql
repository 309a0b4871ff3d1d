-- purpose: members of a plan by message id
-- index: items_by_member
SELECT plan, n, message_id::text, redrive_count, job_key, died_of, outcome, sent_ms, finished_ms, failures, failed_ms, returned, detail
FROM plan_items WHERE plan = $1::bigint AND message_id = ANY ($2::uuid[])
