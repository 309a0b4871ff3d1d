-- purpose: record how a delivery ended; a delivery's first own record stands
-- index: redrive_attempts primary key
INSERT INTO redrive_attempts (
    job_key, message_id, delivery, generation, attempt, queue, worker, outcome,
    started_at_ms, ended_at_ms, error_type, error_message, error_stack, fingerprint
)
VALUES (
    :job_key, :message_id, :delivery, :generation, :attempt, :queue, :worker, :outcome,
    :started_at_ms, :ended_at_ms, :error_type, :error_message, :error_stack, :fingerprint
)
ON DUPLICATE KEY UPDATE delivery = redrive_attempts.delivery;
