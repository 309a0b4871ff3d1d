-- purpose: a slice of a queue's messages, slot by slot, locked; skips held rows
-- index: ready, leased
SELECT * FROM (
SELECT m.id, m.message_id::text, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id::text), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash FROM (
    SELECT s.* FROM messages s WHERE s.queue_id = $1::bigint AND s.slot = 0 AND ($2::bigint IS NULL OR s.enqueued_ms <= $2)
    LIMIT $3::bigint FOR UPDATE SKIP LOCKED) m
UNION ALL
SELECT m.id, m.message_id::text, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id::text), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash FROM (
    SELECT s.* FROM messages s WHERE s.queue_id = $1::bigint AND s.slot = 1 AND ($2::bigint IS NULL OR s.enqueued_ms <= $2)
    LIMIT $3::bigint FOR UPDATE SKIP LOCKED) m
UNION ALL
SELECT m.id, m.message_id::text, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id::text), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash FROM (
    SELECT s.* FROM groups g JOIN messages s ON s.group_id = g.id AND s.slot = 2
    WHERE g.queue_id = $1::bigint AND ($2::bigint IS NULL OR s.enqueued_ms <= $2)
    LIMIT $3::bigint FOR UPDATE OF s SKIP LOCKED) m
UNION ALL
SELECT m.id, m.message_id::text, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id::text), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash FROM (
    SELECT s.* FROM messages s WHERE s.queue_id = $1::bigint AND s.slot = 3 AND ($2::bigint IS NULL OR s.enqueued_ms <= $2)
    LIMIT $3::bigint FOR UPDATE SKIP LOCKED) m
) found LIMIT $3::bigint
