-- purpose: the plans that sent these messages, oldest plan first
-- index: items_by_message
SELECT i.message_id::text, p.plan_id::text FROM plan_items i JOIN plans p ON p.number = i.plan
WHERE i.message_id = ANY ($1::uuid[]) AND i.outcome IN ('sent', 'dead_again') ORDER BY i.plan
