-- purpose: group heads follow their shifted messages
WITH held AS MATERIALIZED (
    SELECT g.id FROM groups g WHERE g.head_due_ms IS NOT NULL ORDER BY g.queue_id, g.key FOR UPDATE)
UPDATE groups g SET head_due_ms = (
    SELECT m.due_ms FROM messages m WHERE m.group_id = g.id AND m.slot = 2 ORDER BY m.position, m.id LIMIT 1)
FROM held WHERE g.id = held.id
