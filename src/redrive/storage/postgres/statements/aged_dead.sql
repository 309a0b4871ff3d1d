-- purpose: dead letters at rest whose retention is over, oldest first, locked; skips held rows
-- index: aging_dead
SELECT m.id, m.message_id::text, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id::text), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash
FROM messages m WHERE m.slot <> 1 AND m.dead AND m.expires_ms >= $3::bigint AND m.expires_ms <= $1::bigint
ORDER BY m.expires_ms, m.id LIMIT $2::bigint FOR UPDATE SKIP LOCKED
