-- purpose: groups whose count of messages is wrong
SELECT 'group ' || g.id || ' of queue ' || g.queue_id || ' counts ' || g.live || ' messages and holds ' || count(m.id)
FROM groups g LEFT JOIN messages m ON m.group_id = g.id GROUP BY g.id HAVING g.live <> count(m.id) ORDER BY g.id LIMIT 20
