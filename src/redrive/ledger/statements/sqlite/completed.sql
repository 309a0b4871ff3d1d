-- purpose: which of these jobs are completed, with the evidence
-- index: redrive_jobs primary key
SELECT job_key, completed_at_ms, result FROM redrive_jobs
WHERE job_key IN (SELECT value FROM json_each(:keys)) AND state = 2;
