-- purpose: what a relay may publish now, oldest first, locked until its claim is written
-- fenced by: SKIP LOCKED: rows that another relay is claiming are passed over
-- index: redrive_jobs_relay
SELECT job.job_key, job.generation, job.queue, payload.payload, payload.options
FROM redrive_jobs AS job
STRAIGHT_JOIN redrive_payloads AS payload ON payload.job_key = job.job_key
WHERE job.relay_after_ms <= CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)
ORDER BY job.relay_after_ms, job.planned_at_ms, job.place
LIMIT :limit
FOR UPDATE SKIP LOCKED;
