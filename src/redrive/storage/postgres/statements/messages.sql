-- purpose: a page of a queue's messages by number
SELECT m.id, m.message_id::text, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id::text), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash,
    q.name, q.state, g.key, m.headers, m.body, p.at_head
FROM messages m JOIN queues q ON q.id = m.queue_id LEFT JOIN groups g ON g.id = m.group_id
CROSS JOIN LATERAL (SELECT m.group_id IS NULL OR g.head_due_ms IS NOT NULL AND m.id = (
    SELECT h.id FROM messages h WHERE h.group_id = m.group_id AND h.slot = 2 ORDER BY h.position, h.id LIMIT 1) AS at_head) p
WHERE m.id > $3::bigint AND m.queue_id = $1::bigint AND ($2::bigint IS NULL OR m.enqueued_ms >= $2)
    AND ($4::int[] IS NULL OR m.slot = ANY ($4)) AND ($5::boolean IS NULL OR m.dead = $5)
    AND m.due_ms > $7::bigint AND m.due_ms <= $8::bigint AND ($6::boolean IS NULL OR p.at_head = $6)
ORDER BY m.id LIMIT $9::bigint
