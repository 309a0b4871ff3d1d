-- purpose: note that the queue has these jobs
-- transition: planned -> accepted (accepted stays accepted after a repair)
-- fenced by: the generation that was published
-- the list is read first, the jobs by key: a scan of the jobs would lock, and wait for, rows of others
-- index: redrive_jobs primary key
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    name VARCHAR(200) CHARACTER SET utf8mb4 PATH '$.key', generation BIGINT PATH '$.generation',
    message_id VARCHAR(200) CHARACTER SET utf8mb4 PATH '$.message_id' NULL ON EMPTY
)) AS given
STRAIGHT_JOIN redrive_jobs FORCE INDEX (PRIMARY) ON redrive_jobs.job_key = CAST(given.name AS BINARY)
SET
    redrive_jobs.state = 1,
    redrive_jobs.message_id = COALESCE(given.message_id, redrive_jobs.message_id),
    redrive_jobs.relay_after_ms = NULL,
    redrive_jobs.claim = NULL,
    redrive_jobs.accepted_at_ms = :now_ms,
    redrive_jobs.updated_at_ms = :now_ms
WHERE redrive_jobs.generation = given.generation AND redrive_jobs.state IN (0, 1)
  AND redrive_jobs.relay_after_ms IS NOT NULL;
