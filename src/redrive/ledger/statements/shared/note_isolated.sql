-- purpose: a reconciliation's repair: the queue holds the job as a dead letter, which the ledger had not learnt
-- transition: accepted -> isolated
-- fenced by: the generation that was judged; nothing waits for a relay
-- index: redrive_jobs primary key
UPDATE redrive_jobs SET state = 3, updated_at_ms = :now_ms
WHERE job_key = :job_key AND state = 1 AND generation = :generation AND relay_after_ms IS NULL;
