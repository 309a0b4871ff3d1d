-- purpose: one group
-- index: sqlite_autoindex_groups_1
SELECT id, queue_id, key, live, next_position, head_due_ms, busy, blocked FROM groups WHERE queue_id = ? AND key = ?
