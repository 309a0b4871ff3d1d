-- purpose: message ids of a plan's members, sorted
-- index: items_by_member
SELECT message_id FROM plan_items INDEXED BY items_by_member WHERE plan = ? AND message_id > ? ORDER BY message_id LIMIT ?
