-- purpose: jobs that were known before become members; a completion under way is waited for
-- lock order: the jobs, then their batch
-- index: redrive_jobs primary key
UPDATE redrive_jobs SET batch = :batch
WHERE job_key = ANY (ARRAY(SELECT value FROM json_array_elements_text(CAST(:keys AS json)) AS given (value)))
  AND batch IS NULL;
