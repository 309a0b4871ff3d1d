-- purpose: message ids of a plan's members, sorted as text, which is their order
-- index: items_by_member
SELECT message_id::text FROM plan_items
WHERE plan = $1::bigint AND ($2::uuid IS NULL OR message_id > $2::uuid) ORDER BY message_id LIMIT $3::bigint
