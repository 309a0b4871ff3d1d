-- purpose: an open dead-letter record
INSERT INTO dead_letters (message_id, delivery, dlq_id, origin, source_group, source_position, blocks, job_key, reason,
    error_type, error, fingerprint, attempts, first_failed_ms, dead_ms, expires_ms, redrive_count, closed_ms, closed_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
