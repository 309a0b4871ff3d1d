-- purpose: which of these jobs are completed, with the evidence
-- index: redrive_jobs primary key
SELECT redrive_jobs.job_key, redrive_jobs.completed_at_ms, redrive_jobs.result
FROM JSON_TABLE(:keys, '$[*]' COLUMNS (name VARCHAR(200) CHARACTER SET utf8mb4 PATH '$')) AS given
STRAIGHT_JOIN redrive_jobs FORCE INDEX (PRIMARY) ON redrive_jobs.job_key = CAST(given.name AS BINARY)
WHERE redrive_jobs.state = 2;
