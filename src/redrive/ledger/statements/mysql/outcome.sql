-- purpose: keep an outcome that is not final: accepted (it will be tried again) or isolated
-- transition: planned, accepted, isolated or unknown -> accepted, isolated
-- fenced by: (generation, delivery) not older than the stored one; within one delivery only forward
-- index: redrive_jobs primary key
INSERT INTO redrive_jobs (job_key, queue, state, generation, message_id, delivery, accepted_at_ms, updated_at_ms)
VALUES (:job_key, :queue, :state, :generation, :message_id, :delivery, :now_ms, :now_ms)
ON DUPLICATE KEY UPDATE job_key = redrive_jobs.job_key;
UPDATE redrive_jobs SET
    state = :state,
    generation = :generation,
    message_id = :message_id,
    delivery = :delivery,
    relay_after_ms = NULL,
    claim = NULL,
    accepted_at_ms = coalesce(accepted_at_ms, :now_ms),
    updated_at_ms = :now_ms
WHERE job_key = :job_key AND state NOT IN (2, 4)
  AND (generation < :generation
    OR (generation = :generation AND delivery < :delivery)
    OR (generation = :generation AND delivery = :delivery AND state <= :state));
