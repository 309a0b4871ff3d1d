-- purpose: groups that hold messages at rest and that nobody would ever lease from
SELECT 'group ' || g.id || ' of queue ' || g.queue_id || ' is stranded: not busy, not blocked, messages at rest, no head' FROM groups g
WHERE g.head_due_ms IS NULL AND g.busy IS NULL AND g.blocked = 0
    AND EXISTS (SELECT 1 FROM messages m WHERE m.group_id = g.id AND m.slot = 2)
LIMIT 20
