-- purpose: the jobs that the batch publishes by itself, and how far they have come
-- index: redrive_follow_ups primary key, redrive_jobs primary key
SELECT due.kind, due.job_key, due.queue, job.state
FROM redrive_follow_ups AS due
LEFT JOIN redrive_jobs AS job ON job.job_key = due.job_key
WHERE due.batch_key = :batch
ORDER BY due.kind;
