-- purpose: a slice of a queue's messages in one slot
-- index: ready, leased
SELECT m.id, m.message_id, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash FROM messages m WHERE m.queue_id = ?1 AND m.slot = 0 AND (?2 IS NULL OR m.enqueued_ms <= ?2)
UNION ALL
SELECT m.id, m.message_id, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash FROM messages m WHERE m.queue_id = ?1 AND m.slot = 1 AND (?2 IS NULL OR m.enqueued_ms <= ?2)
UNION ALL
SELECT m.id, m.message_id, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash FROM groups g JOIN messages m ON m.group_id = g.id AND m.slot = 2
WHERE g.queue_id = ?1 AND (?2 IS NULL OR m.enqueued_ms <= ?2)
UNION ALL
SELECT m.id, m.message_id, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash FROM messages m WHERE m.queue_id = ?1 AND m.slot = 3 AND (?2 IS NULL OR m.enqueued_ms <= ?2)
LIMIT ?3
