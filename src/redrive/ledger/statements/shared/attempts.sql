-- purpose: how the deliveries of a job ended, in order
-- index: redrive_attempts primary key
SELECT message_id, delivery, derived, attempt, generation, worker, outcome, started_at_ms, ended_at_ms,
       error_type, error_message, error_stack, fingerprint
FROM redrive_attempts WHERE job_key = :job_key
ORDER BY generation, delivery, derived DESC, message_id;
