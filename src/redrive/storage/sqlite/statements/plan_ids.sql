-- purpose: the plans that sent these messages, oldest plan first
-- index: items_by_message
SELECT i.message_id, p.plan_id FROM plan_items i INDEXED BY items_by_message JOIN plans p ON p.number = i.plan
WHERE i.message_id IN (SELECT value FROM json_each(?)) AND i.outcome IN ('sent', 'dead_again') ORDER BY i.plan
