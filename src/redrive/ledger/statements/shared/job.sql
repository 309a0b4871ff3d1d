-- purpose: one job as the ledger knows it
-- index: redrive_jobs primary key
SELECT job_key, queue, state, generation, message_id, delivery, producer, result,
       planned_at_ms, accepted_at_ms, completed_at_ms, updated_at_ms,
       redrive_jobs.batch
FROM redrive_jobs WHERE job_key = :job_key;
