-- purpose: the groups of these keys, made where missing, locked; those that another node holds or makes meanwhile are absent
-- index: groups_queue_id_key_key
WITH wanted AS MATERIALIZED (
    SELECT w.queue_id, w.key FROM unnest($1::bigint[], $2::text[]) AS w (queue_id, key) ORDER BY 1, 2),
made AS (
    INSERT INTO groups AS g (queue_id, key)
    SELECT w.queue_id, w.key FROM wanted w
    WHERE NOT EXISTS (SELECT 1 FROM groups o WHERE o.queue_id = w.queue_id AND o.key = w.key)
    ORDER BY w.queue_id, w.key COLLATE "C" ON CONFLICT (queue_id, key) DO NOTHING RETURNING g.id, g.queue_id, g.key, g.live, g.next_position, g.head_due_ms, g.busy, g.blocked),
held AS MATERIALIZED (
    SELECT g.id, g.queue_id, g.key, g.live, g.next_position, g.head_due_ms, g.busy, g.blocked FROM wanted w JOIN groups g ON g.queue_id = w.queue_id AND g.key = w.key
    ORDER BY g.queue_id, g.key FOR UPDATE OF g SKIP LOCKED)
SELECT * FROM held UNION ALL SELECT * FROM made
