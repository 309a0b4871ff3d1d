-- purpose: a page of the jobs to look at again
-- index: suspects primary key
SELECT job_key, final, message_ids FROM suspects WHERE job_key > :after ORDER BY job_key LIMIT :limit;
