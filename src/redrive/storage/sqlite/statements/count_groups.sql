-- purpose: due and delayed heads, messages behind them, blocked groups
SELECT count(*) FILTER (WHERE g.head_due_ms <= :now), count(*) FILTER (WHERE g.head_due_ms > :now),
    min(g.head_due_ms) FILTER (WHERE g.head_due_ms <= :now), count(*) FILTER (WHERE g.blocked > 0)
FROM groups g WHERE g.queue_id = :queue
