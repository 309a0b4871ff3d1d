-- purpose: due and delayed heads, the oldest due, blocked groups
SELECT count(*) FILTER (WHERE g.head_due_ms <= $2::bigint), count(*) FILTER (WHERE g.head_due_ms > $2),
    min(g.head_due_ms) FILTER (WHERE g.head_due_ms <= $2), count(*) FILTER (WHERE g.blocked > 0)
FROM groups g WHERE g.queue_id = $1::bigint
