-- purpose: which of these jobs are completed, with the evidence
-- index: redrive_jobs primary key
SELECT job_key, completed_at_ms, result FROM redrive_jobs
WHERE job_key = ANY (ARRAY(SELECT value FROM json_array_elements_text(CAST(:keys AS json)) AS given (value)))
  AND state = 2;
