-- purpose: a group on first sight
INSERT INTO groups (queue_id, key, live, next_position, head_due_ms, busy, blocked)
VALUES (?, ?, 0, 1, NULL, NULL, 0) ON CONFLICT (queue_id, key) DO NOTHING
