-- purpose: keep a job that the batch publishes by itself, until it is due
-- index: redrive_follow_ups primary key
INSERT INTO redrive_follow_ups (batch_key, kind, job_key, queue, payload, options)
VALUES (:batch, :kind, :job_key, :queue, :payload, :options);
