-- purpose: every dead-letter record of a message
SELECT d.message_id::text, d.delivery, d.dlq_id, d.origin, d.source_group, d.source_position, d.blocks, d.job_key, d.reason,
    d.error_type, d.error, d.fingerprint, d.attempts, d.first_failed_ms, d.dead_ms, d.expires_ms, d.redrive_count,
    d.closed_ms, d.closed_by
FROM dead_letters d WHERE d.message_id = $1::uuid ORDER BY d.redrive_count
