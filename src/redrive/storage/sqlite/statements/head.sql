-- purpose: the group's first message at rest, and when it is due
-- index: in_group
SELECT id, due_ms FROM messages WHERE group_id = ? AND slot = 2 ORDER BY position, id LIMIT 1
