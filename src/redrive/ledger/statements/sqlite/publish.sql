-- purpose: plan jobs in the producer's transaction; a key that is known is left as it is. Touches the rows planned now
-- transition: unknown -> planned
-- index: redrive_jobs primary key, redrive_payloads primary key
INSERT INTO redrive_jobs (job_key, queue, state, producer, relay_after_ms, place, planned_at_ms, updated_at_ms, batch)
SELECT json_extract(value, '$.key'), :queue, 0, :producer, 0, json_extract(value, '$.place'), :now_ms, :now_ms,
       :batch
FROM json_each(:jobs) WHERE true
ON CONFLICT (job_key) DO NOTHING;
INSERT INTO redrive_payloads (job_key, payload, options)
SELECT json_extract(value, '$.key'), json_extract(value, '$.payload'), json_extract(value, '$.options')
FROM json_each(:jobs)
JOIN redrive_jobs ON redrive_jobs.job_key = json_extract(value, '$.key') AND redrive_jobs.state = 0
WHERE true
ON CONFLICT (job_key) DO NOTHING;
