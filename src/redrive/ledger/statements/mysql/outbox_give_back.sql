-- purpose: give claimed rows back that could not be published, due after a pause (the database's clock)
-- fenced by: the claim
-- index: redrive_jobs primary key
UPDATE redrive_jobs SET claim = NULL, relay_after_ms = CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) + :pause_ms
WHERE job_key = :job_key AND claim = :claim;
