-- purpose: no other relay takes these rows for the time of the claim (the database's clock)
-- the list is read first, the jobs by key: a scan of the jobs would lock, and wait for, rows of others
-- index: redrive_jobs primary key
UPDATE JSON_TABLE(:keys, '$[*]' COLUMNS (name VARCHAR(200) CHARACTER SET utf8mb4 PATH '$')) AS taken
STRAIGHT_JOIN redrive_jobs FORCE INDEX (PRIMARY) ON redrive_jobs.job_key = CAST(taken.name AS BINARY)
SET redrive_jobs.claim = :claim, redrive_jobs.relay_after_ms = CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) + :claim_ms;
