-- purpose: the first message at rest of a group
-- transition: lease
-- index: in_group
SELECT m.id, m.message_id, m.job_key, m.priority, m.attempt + 1, m.delivery + 1, m.ended, m.enqueued_ms, m.group_id,
    m.headers, b.body, m.body_hash, m.dead, m.redriven
FROM messages m JOIN bodies b ON b.id = m.id
WHERE m.group_id = ? AND m.slot = 2 ORDER BY m.position, m.id LIMIT 1
