-- purpose: what the ledger knows of these jobs, of whatever queue, and whether it has their payload
-- index: redrive_jobs primary key, redrive_payloads primary key
SELECT job.job_key, job.queue, job.state, job.generation, job.message_id, job.relay_after_ms IS NOT NULL,
       job.completed_at_ms, job.updated_at_ms,
       EXISTS (SELECT 1 FROM redrive_payloads AS payload WHERE payload.job_key = job.job_key)
FROM redrive_jobs AS job
WHERE job.job_key IN (SELECT value FROM json_each(:keys));
