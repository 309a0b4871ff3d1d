-- purpose: what is left of a message
SELECT message_id::text, queue, job_key, cause, reason, fingerprint, enqueued_ms, removed_ms, body_hash
FROM tombstones WHERE message_id = $1::uuid
