-- purpose: members that were rejected with the fingerprint they had died of, first first, up to a limit
-- index: items_returned
SELECT message_id::text, died_of FROM plan_items WHERE plan = $1::bigint AND returned ORDER BY n LIMIT $2::bigint
