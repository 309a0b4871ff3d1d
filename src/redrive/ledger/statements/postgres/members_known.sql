-- purpose: which of these jobs are known, how far they are and which batch they belong to
-- index: redrive_jobs primary key
SELECT redrive_jobs.job_key, redrive_jobs.state, redrive_jobs.batch
FROM redrive_jobs
WHERE job_key = ANY (ARRAY(SELECT value FROM json_array_elements_text(CAST(:keys AS json)) AS given (value)));
