-- purpose: jobs that were known before become members; a completion under way is waited for
-- lock order: the jobs, then their batch
-- index: redrive_jobs primary key
UPDATE redrive_jobs SET batch = :batch
WHERE job_key IN (SELECT value FROM json_each(:keys)) AND batch IS NULL;
