-- purpose: what the ledger knows of these jobs, of whatever queue, and whether it has their payload
-- the list is read first, the jobs by key
-- index: redrive_jobs primary key, redrive_payloads primary key
SELECT job.job_key, job.queue, job.state, job.generation, job.message_id, job.relay_after_ms IS NOT NULL,
       job.completed_at_ms, job.updated_at_ms,
       EXISTS (SELECT 1 FROM redrive_payloads AS payload WHERE payload.job_key = job.job_key)
FROM JSON_TABLE(:keys, '$[*]' COLUMNS (name VARCHAR(200) CHARACTER SET utf8mb4 PATH '$')) AS given
STRAIGHT_JOIN redrive_jobs AS job FORCE INDEX (PRIMARY) ON job.job_key = CAST(given.name AS BINARY);
