-- purpose: members that must not run any more; a receipt for them is refused from now on
-- transition: planned, accepted, isolated -> cancelled
-- index: redrive_jobs primary key
UPDATE redrive_jobs SET state = 4, relay_after_ms = NULL, claim = NULL, updated_at_ms = :now_ms
WHERE job_key IN (SELECT value FROM json_each(:keys)) AND state IN (0, 1, 3);
