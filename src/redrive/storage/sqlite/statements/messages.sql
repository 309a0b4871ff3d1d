-- purpose: a page of a queue's messages by number
-- index: in_group
SELECT m.id, m.message_id, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash, q.name, q.state, g.key, m.headers, b.body,
    (m.group_id IS NULL OR g.head_due_ms IS NOT NULL AND m.id = (
    SELECT h.id FROM messages h WHERE h.group_id = m.group_id AND h.slot = 2 ORDER BY h.position, h.id LIMIT 1)) AS at_head
FROM messages m JOIN bodies b ON b.id = m.id JOIN queues q ON q.id = m.queue_id LEFT JOIN groups g ON g.id = m.group_id
WHERE m.id > :after AND m.queue_id = :queue AND (:since_ms IS NULL OR m.enqueued_ms >= :since_ms)
    AND (:slots IS NULL OR m.slot IN (SELECT value FROM json_each(:slots))) AND (:dead IS NULL OR m.dead = :dead)
    AND m.due_ms > :due_after_ms AND m.due_ms <= :due_until_ms
    AND (:at_head IS NULL OR at_head = :at_head)
ORDER BY m.id LIMIT :limit
