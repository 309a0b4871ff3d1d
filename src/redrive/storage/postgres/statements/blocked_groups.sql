-- purpose: groups that a dead letter holds
-- index: blocked_groups
WITH found AS MATERIALIZED (
    SELECT g.id FROM groups g WHERE g.queue_id = $1::bigint AND g.blocked > 0 ORDER BY g.id LIMIT $2::bigint)
SELECT g.id, g.queue_id, g.key, g.live, g.next_position, g.head_due_ms, g.busy, g.blocked
FROM groups g WHERE g.id IN (SELECT id FROM found) AND g.blocked > 0 ORDER BY g.queue_id, g.key FOR UPDATE OF g
