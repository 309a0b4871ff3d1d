-- purpose: groups whose head is due, oldest head first, locked, with their places; skips held ones
-- index: due_groups
SELECT g.id, g.key, g.head_due_ms, g.ctid FROM groups g
WHERE g.queue_id = $1::bigint AND g.head_due_ms >= $4::bigint AND g.head_due_ms <= $2::bigint
ORDER BY g.head_due_ms, g.id LIMIT $3::bigint FOR UPDATE SKIP LOCKED
