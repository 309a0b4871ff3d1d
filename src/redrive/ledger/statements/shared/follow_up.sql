-- purpose: plan the job that the batch publishes by itself (kind 0: all are completed, 1: the deadline is missed)
-- transition: unknown -> planned
-- fenced by: the batch row, which is locked; the job key, which is unique
-- index: redrive_follow_ups primary key, redrive_jobs primary key, redrive_payloads primary key
INSERT INTO redrive_jobs (job_key, queue, state, producer, relay_after_ms, planned_at_ms, updated_at_ms)
SELECT due.job_key, due.queue, 0, batch.producer, 0, batch.updated_at_ms, batch.updated_at_ms
FROM redrive_follow_ups AS due
JOIN redrive_batches AS batch ON batch.batch_key = due.batch_key
WHERE due.batch_key = :batch AND due.kind = :kind
ON CONFLICT (job_key) DO NOTHING;
INSERT INTO redrive_payloads (job_key, payload, options)
SELECT due.job_key, due.payload, due.options FROM redrive_follow_ups AS due
WHERE due.batch_key = :batch AND due.kind = :kind
ON CONFLICT (job_key) DO NOTHING;
