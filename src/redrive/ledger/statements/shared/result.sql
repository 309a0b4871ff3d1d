-- purpose: keep what the change returned
-- fenced by: the receipt; no row means that the change ended the transaction
-- index: redrive_jobs primary key
UPDATE redrive_jobs SET result = :result WHERE job_key = :job_key AND receipt = :receipt;
