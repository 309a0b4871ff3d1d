-- purpose: plan jobs in the producer's transaction; a key that is known is left as it is. Touches the rows planned now
-- transition: unknown -> planned
-- index: redrive_jobs primary key, redrive_payloads primary key
INSERT INTO redrive_jobs (job_key, queue, state, producer, relay_after_ms, place, planned_at_ms, updated_at_ms, redrive_jobs.batch)
SELECT CAST(job.name AS BINARY), :queue, 0, :producer, 0, job.place, :now_ms, :now_ms, :batch
FROM JSON_TABLE(:jobs, '$[*]' COLUMNS (
    name VARCHAR(200) CHARACTER SET utf8mb4 PATH '$.key', payload LONGTEXT CHARACTER SET utf8mb4 PATH '$.payload',
    options LONGTEXT CHARACTER SET utf8mb4 PATH '$.options', place BIGINT PATH '$.place'
)) AS job
ON DUPLICATE KEY UPDATE job_key = redrive_jobs.job_key;
INSERT INTO redrive_payloads (job_key, payload, options)
SELECT CAST(job.name AS BINARY), job.payload, job.options
FROM JSON_TABLE(:jobs, '$[*]' COLUMNS (
    name VARCHAR(200) CHARACTER SET utf8mb4 PATH '$.key', payload LONGTEXT CHARACTER SET utf8mb4 PATH '$.payload',
    options LONGTEXT CHARACTER SET utf8mb4 PATH '$.options', place BIGINT PATH '$.place'
)) AS job
STRAIGHT_JOIN redrive_jobs FORCE INDEX (PRIMARY) ON redrive_jobs.job_key = CAST(job.name AS BINARY) AND redrive_jobs.state = 0
LEFT JOIN redrive_payloads AS known FORCE INDEX (PRIMARY) ON known.job_key = redrive_jobs.job_key
WHERE known.job_key IS NULL;
