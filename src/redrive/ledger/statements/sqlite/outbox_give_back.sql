-- purpose: give claimed rows back that could not be published, due after a pause (the database's clock)
-- fenced by: the claim
-- index: redrive_jobs primary key
UPDATE redrive_jobs SET claim = NULL, relay_after_ms = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + :pause_ms
WHERE job_key = :job_key AND claim = :claim;
