-- purpose: when the group's first message at rest is due
-- index: in_group
SELECT due_ms FROM messages WHERE group_id = $1::bigint AND slot = 2 ORDER BY position, id LIMIT 1
