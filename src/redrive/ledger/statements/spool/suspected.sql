-- purpose: which of these jobs are to be looked at again
-- index: suspects primary key
SELECT job_key FROM suspects WHERE job_key IN (SELECT value FROM json_each(:keys));
