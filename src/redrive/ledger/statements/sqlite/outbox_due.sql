-- purpose: what a relay may publish now, oldest first, locked until its claim is written
-- fenced by: the write lock of BEGIN IMMEDIATE
-- index: redrive_jobs_relay
SELECT job.job_key, job.generation, job.queue, payload.payload, payload.options
FROM redrive_jobs AS job
JOIN redrive_payloads AS payload ON payload.job_key = job.job_key
WHERE job.relay_after_ms <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
ORDER BY job.relay_after_ms, job.planned_at_ms, job.place
LIMIT :limit;
