-- purpose: leases whose time is over, queue by queue, oldest end first, locked; skips held rows
-- index: leased
SELECT m.id, m.message_id::text, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id::text), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash
FROM (SELECT id FROM queues ORDER BY id) q CROSS JOIN LATERAL (
    SELECT l.* FROM messages l WHERE l.queue_id = q.id AND l.slot = 1 AND l.lease_until_ms >= $3::bigint AND l.lease_until_ms <= $1::bigint
    ORDER BY l.lease_until_ms, l.id LIMIT $2::bigint FOR UPDATE SKIP LOCKED) m
LIMIT $2::bigint
