-- purpose: which of these jobs are known, how far they are and which batch they belong to
-- index: redrive_jobs primary key
SELECT redrive_jobs.job_key, redrive_jobs.state, redrive_jobs.batch
FROM JSON_TABLE(:keys, '$[*]' COLUMNS (name VARCHAR(200) CHARACTER SET utf8mb4 PATH '$')) AS given
STRAIGHT_JOIN redrive_jobs FORCE INDEX (PRIMARY) ON redrive_jobs.job_key = CAST(given.name AS BINARY);
