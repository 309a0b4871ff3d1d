-- purpose: members that were rejected with the fingerprint they had died of, since a time, first first, up to a limit
-- index: items_returned
SELECT message_id::text, died_of FROM plan_items WHERE plan = $1::bigint AND returned AND failed_ms >= $2::bigint ORDER BY n LIMIT $3::bigint
