-- purpose: a page of the members of a batch in the states from first_state to last_state, in the order of their keys' bytes
-- index: redrive_jobs_batch
SELECT job_key, state, queue, message_id, generation, delivery, updated_at_ms
FROM redrive_jobs
WHERE batch = :batch AND job_key > :after AND state BETWEEN :first_state AND :last_state
ORDER BY job_key
LIMIT :limit;
