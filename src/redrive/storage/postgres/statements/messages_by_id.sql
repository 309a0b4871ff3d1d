-- purpose: messages as an operator sees them
-- index: messages_message_id_key
SELECT m.id, m.message_id::text, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id::text), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash,
    q.name, q.state, g.key, m.headers, m.body
FROM messages m JOIN queues q ON q.id = m.queue_id LEFT JOIN groups g ON g.id = m.group_id
WHERE m.message_id = ANY ($1::uuid[])
