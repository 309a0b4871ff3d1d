-- purpose: whose receipt the job holds, and its result, for one who did not get it
-- index: redrive_jobs primary key
SELECT state, result, receipt, redrive_jobs.batch FROM redrive_jobs WHERE job_key = :job_key;
