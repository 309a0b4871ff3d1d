-- purpose: groups of these numbers
SELECT id, queue_id, key, live, next_position, head_due_ms, busy, blocked FROM groups WHERE id IN (SELECT value FROM json_each(?))
