-- purpose: busy groups whose head is not leased, and leased messages whose group is not busy with them
SELECT 'group ' || g.id || ' is busy with message number ' || g.busy || ', which is not leased in it' FROM groups g
WHERE g.busy IS NOT NULL AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = g.busy AND m.slot = 1 AND m.group_id = g.id)
UNION ALL
SELECT 'message ' || m.message_id || ' is leased and its group ' || m.group_id || ' is not busy with it' FROM messages m
WHERE m.slot = 1 AND m.group_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM groups g WHERE g.id = m.group_id AND g.busy = m.id)
LIMIT 20
