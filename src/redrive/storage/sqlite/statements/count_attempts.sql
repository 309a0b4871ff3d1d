-- purpose: live messages by attempt
-- index: ready, leased, in_group
SELECT attempt, count(*) FROM (
    SELECT m.attempt FROM messages m WHERE m.queue_id = ?1 AND m.slot = 0 AND m.dead = 0
    UNION ALL
    SELECT m.attempt FROM messages m WHERE m.queue_id = ?1 AND m.slot = 1 AND m.dead = 0
    UNION ALL
    SELECT m.attempt FROM groups g JOIN messages m ON m.group_id = g.id AND m.slot = 2 AND m.dead = 0 WHERE g.queue_id = ?1
) GROUP BY attempt
