-- purpose: what is left of a message
SELECT message_id::text, queue, job_key, cause, reason, fingerprint, enqueued_ms, removed_ms, body_hash, first_failed_ms, dead_ms, archive
FROM tombstones WHERE message_id = $1::uuid
