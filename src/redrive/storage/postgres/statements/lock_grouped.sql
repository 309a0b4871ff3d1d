-- purpose: the facts of these messages, whose groups are locked already, locked in order; skips held rows
-- index: messages_message_id_key
SELECT m.id, m.message_id::text, m.queue_id, m.slot, m.priority, m.due_ms, m.expires_ms, m.attempt, m.releases, m.delivery,
    m.handle, m.leased_ms, m.lease_until_ms, m.ended, m.cancelled, m.dead, m.group_id, m.position,
    coalesce(m.job_key, m.message_id::text), m.enqueued_ms, m.consumer_id, m.first_failed_ms, m.redriven, m.body_hash
FROM messages m WHERE m.message_id = ANY ($1::uuid[]) ORDER BY m.id FOR UPDATE OF m SKIP LOCKED
