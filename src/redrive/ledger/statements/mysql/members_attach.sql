-- purpose: jobs that were known before become members; a completion under way is waited for
-- lock order: the jobs, then their batch
-- index: redrive_jobs primary key
UPDATE JSON_TABLE(:keys, '$[*]' COLUMNS (name VARCHAR(200) CHARACTER SET utf8mb4 PATH '$')) AS given
STRAIGHT_JOIN redrive_jobs FORCE INDEX (PRIMARY) ON redrive_jobs.job_key = CAST(given.name AS BINARY)
SET redrive_jobs.batch = :batch
WHERE redrive_jobs.batch IS NULL;
