-- purpose: no other relay takes these rows for the time of the claim (the database's clock)
-- index: redrive_jobs primary key
UPDATE redrive_jobs SET claim = :claim, relay_after_ms = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + :claim_ms
WHERE job_key IN (SELECT value FROM json_each(:keys));
