-- purpose: whether a queue holds any message at all, also one that another transaction holds
-- index: ready, leased, held
SELECT EXISTS (SELECT 1 FROM messages m WHERE m.queue_id = $1::bigint AND m.slot = 0 AND ($2::bigint IS NULL OR m.enqueued_ms <= $2))
    OR EXISTS (SELECT 1 FROM messages m WHERE m.queue_id = $1 AND m.slot = 1 AND ($2 IS NULL OR m.enqueued_ms <= $2))
    OR EXISTS (SELECT 1 FROM messages m WHERE m.queue_id = $1 AND m.slot = 3 AND ($2 IS NULL OR m.enqueued_ms <= $2))
    OR EXISTS (SELECT 1 FROM groups g JOIN messages m ON m.group_id = g.id AND m.slot = 2
        WHERE g.queue_id = $1 AND ($2 IS NULL OR m.enqueued_ms <= $2))
