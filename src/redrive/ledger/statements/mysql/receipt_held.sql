-- purpose: whose receipt the job holds, its result, and its batch
-- index: redrive_jobs primary key
-- a plain read would answer from the transaction's old snapshot
SELECT state, result, receipt, redrive_jobs.batch FROM redrive_jobs WHERE job_key = :job_key FOR UPDATE;
