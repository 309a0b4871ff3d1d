-- purpose: a reconciliation's repair: a message that no producer planned becomes an accepted job
-- transition: unknown -> accepted
-- index: redrive_jobs primary key
INSERT INTO redrive_jobs (job_key, queue, state, message_id, producer, accepted_at_ms, updated_at_ms)
VALUES (:job_key, :queue, 1, :message_id, :producer, :now_ms, :now_ms)
ON CONFLICT (job_key) DO NOTHING;
