-- purpose: due messages of one priority level, oldest first; leased by lease.sql as they are taken
-- transition: lease
-- index: ready
SELECT m.id, m.message_id, m.job_key, m.priority, m.attempt + 1, m.delivery + 1, m.ended, m.enqueued_ms, m.group_id,
    m.headers, b.body, m.body_hash, m.dead, m.redriven
FROM messages m JOIN bodies b ON b.id = m.id
WHERE m.queue_id = ? AND m.slot = 0 AND m.priority = ? AND m.due_ms <= ?
ORDER BY m.due_ms, m.id LIMIT ?
