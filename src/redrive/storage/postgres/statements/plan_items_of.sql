-- purpose: a page of a plan's members of one outcome
-- index: items_by_outcome
SELECT plan, n, message_id::text, redrive_count, job_key, died_of, outcome, sent_ms, finished_ms, failures, failed_ms, returned, detail
FROM plan_items WHERE plan = $1::bigint AND outcome = $2::text AND n > $3::bigint ORDER BY n LIMIT $4::bigint
