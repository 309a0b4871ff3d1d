-- purpose: note that the queue redrives an isolated job
-- transition: isolated -> accepted
-- index: redrive_jobs primary key
UPDATE redrive_jobs SET state = 1, updated_at_ms = :now_ms
WHERE job_key = :job_key AND state = 3;
