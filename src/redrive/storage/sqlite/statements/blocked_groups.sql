-- purpose: groups that a dead letter holds
-- index: blocked_groups
SELECT id, queue_id, key, live, next_position, head_due_ms, busy, blocked FROM groups WHERE queue_id = ? AND blocked > 0 ORDER BY id LIMIT ?
