-- purpose: group heads follow their shifted messages
UPDATE groups SET head_due_ms = (
    SELECT m.due_ms FROM messages m WHERE m.group_id = groups.id AND m.slot = 2 ORDER BY m.position LIMIT 1)
WHERE head_due_ms IS NOT NULL
