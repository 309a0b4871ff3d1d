-- purpose: what is left of a message removed unfinished
INSERT INTO tombstones (message_id, queue, job_key, cause, reason, fingerprint, enqueued_ms, removed_ms, body_hash,
    first_failed_ms, dead_ms, archive)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (message_id) DO NOTHING
