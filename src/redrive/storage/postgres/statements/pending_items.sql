-- purpose: members whose turn has not come, in order
-- index: pending_items
SELECT plan, n, message_id::text, redrive_count, job_key, died_of, outcome, sent_ms, finished_ms, failures, failed_ms, returned, detail
FROM plan_items WHERE plan = $1::bigint AND n >= $2::bigint AND outcome = 'pending' ORDER BY n LIMIT $3::bigint
