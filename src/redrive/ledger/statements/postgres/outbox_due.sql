-- purpose: what a relay may publish now, oldest first, locked until its claim is written
-- fenced by: SKIP LOCKED: rows that another relay is claiming are passed over
-- index: redrive_jobs_relay
SELECT job.job_key, job.generation, job.queue, payload.payload, payload.options
FROM redrive_jobs AS job
JOIN redrive_payloads AS payload ON payload.job_key = job.job_key
WHERE job.relay_after_ms <= CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)
ORDER BY job.relay_after_ms, job.planned_at_ms, job.place
LIMIT :limit
FOR UPDATE OF job SKIP LOCKED;
