-- purpose: groups whose head is due, oldest head first
-- index: due_groups
SELECT id, key FROM groups WHERE queue_id = ? AND head_due_ms <= ? ORDER BY head_due_ms, id LIMIT ?
