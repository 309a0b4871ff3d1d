-- purpose: no other relay takes these rows for the time of the claim (the database's clock)
-- index: redrive_jobs primary key
UPDATE redrive_jobs SET claim = :claim, relay_after_ms = CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) + :claim_ms
WHERE job_key IN (SELECT json_array_elements_text(CAST(:keys AS json)));
