-- purpose: members that must not run any more; a receipt for them is refused from now on
-- transition: planned, accepted, isolated -> cancelled
-- index: redrive_jobs primary key
UPDATE JSON_TABLE(:keys, '$[*]' COLUMNS (name VARCHAR(200) CHARACTER SET utf8mb4 PATH '$')) AS given
STRAIGHT_JOIN redrive_jobs FORCE INDEX (PRIMARY) ON redrive_jobs.job_key = CAST(given.name AS BINARY)
SET
    redrive_jobs.state = 4, redrive_jobs.relay_after_ms = NULL, redrive_jobs.claim = NULL,
    redrive_jobs.updated_at_ms = :now_ms
WHERE redrive_jobs.state IN (0, 1, 3);
