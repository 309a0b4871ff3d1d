-- purpose: record the delivery that had the effect, and keep what the change returned
-- fenced by: the receipt; no row means that the change ended the transaction
-- index: redrive_jobs primary key, redrive_attempts primary key
INSERT INTO redrive_attempts (
    job_key, message_id, delivery, generation, attempt, queue, worker, outcome,
    started_at_ms, ended_at_ms, error_type, error_message, error_stack, fingerprint
)
VALUES (
    :job_key, :message_id, :delivery, :generation, :attempt, :queue, :worker, :outcome,
    :started_at_ms, :ended_at_ms, :error_type, :error_message, :error_stack, :fingerprint
)
ON CONFLICT (job_key, message_id, delivery, derived) DO NOTHING;
UPDATE redrive_jobs SET result = :result WHERE job_key = :job_key AND receipt = :receipt;
