-- purpose: live messages by attempt
SELECT attempt, count(*) FROM (
    SELECT attempt FROM messages WHERE queue_id = $1::bigint AND slot = 0 AND NOT dead
    UNION ALL
    SELECT attempt FROM messages WHERE queue_id = $1 AND slot = 1 AND NOT dead
    UNION ALL
    SELECT m.attempt FROM groups g JOIN messages m ON m.group_id = g.id AND m.slot = 2 WHERE g.queue_id = $1 AND NOT m.dead
) live GROUP BY attempt
