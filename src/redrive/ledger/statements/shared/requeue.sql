-- purpose: a reconciliation's repair: publish a lost job again, under the next generation, so that it really enqueues
-- transition: accepted -> accepted
-- fenced by: the generation that was judged; nothing waits for a relay already; the payload is known
-- index: redrive_jobs primary key, redrive_payloads primary key
UPDATE redrive_jobs SET
    generation = generation + 1,
    message_id = NULL,
    delivery = 0,
    relay_after_ms = 0,
    claim = NULL,
    updated_at_ms = :now_ms
WHERE job_key = :job_key AND state = 1 AND generation = :generation AND relay_after_ms IS NULL
  AND EXISTS (SELECT 1 FROM redrive_payloads AS payload WHERE payload.job_key = redrive_jobs.job_key);
