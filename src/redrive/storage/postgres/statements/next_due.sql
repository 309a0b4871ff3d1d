-- purpose: when the next message is due, over the priority levels
-- index: ready
SELECT min(d.due_ms) FROM unnest($2::int[], $3::bigint[]) AS level (priority, floor) CROSS JOIN LATERAL (
    SELECT m.due_ms FROM messages m WHERE m.queue_id = $1::bigint AND m.slot = 0 AND m.priority = level.priority AND m.due_ms >= level.floor
    ORDER BY m.due_ms LIMIT 1) d
