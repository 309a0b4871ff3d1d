-- purpose: members that are not completed and that nobody completes at this moment, locked
-- fenced by: SKIP LOCKED: a completion under way is not waited for
-- index: redrive_jobs_batch
SELECT job_key FROM redrive_jobs
WHERE batch = :batch AND job_key > :after AND state IN (0, 1, 3)
ORDER BY job_key
LIMIT :limit
FOR UPDATE SKIP LOCKED;
