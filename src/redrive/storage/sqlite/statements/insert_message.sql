-- purpose: a new message
-- transition: publish
INSERT INTO messages (id, message_id, queue_id, slot, priority, due_ms, expires_ms, group_id, position, job_key,
    enqueued_ms, headers, body_hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
