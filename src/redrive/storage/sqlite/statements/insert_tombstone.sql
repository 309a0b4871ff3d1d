-- purpose: what is left of a message removed unfinished
INSERT INTO tombstones (message_id, queue, job_key, cause, reason, fingerprint, enqueued_ms, removed_ms, body_hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (message_id) DO NOTHING
