-- purpose: note that the queue has these jobs
-- transition: planned -> accepted (accepted stays accepted after a repair)
-- fenced by: the generation that was published
-- index: redrive_jobs primary key
UPDATE redrive_jobs SET
    state = 1,
    message_id = coalesce(given.message_id, redrive_jobs.message_id),
    relay_after_ms = NULL,
    claim = NULL,
    accepted_at_ms = :now_ms,
    updated_at_ms = :now_ms
FROM (
    SELECT json_extract(value, '$.key') AS key, json_extract(value, '$.generation') AS generation,
           json_extract(value, '$.message_id') AS message_id
    FROM json_each(:rows)
) AS given
WHERE redrive_jobs.job_key = given.key AND redrive_jobs.generation = given.generation AND redrive_jobs.state IN (0, 1) AND redrive_jobs.relay_after_ms IS NOT NULL;
