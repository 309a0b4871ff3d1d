-- purpose: a page of the jobs of a queue that are not final, in the order of their keys' bytes
-- index: redrive_jobs primary key
SELECT job_key, queue, state, generation, message_id, relay_after_ms IS NOT NULL, completed_at_ms, updated_at_ms
FROM redrive_jobs
WHERE job_key > :after AND queue = :queue AND state IN (0, 1, 3)
ORDER BY job_key
LIMIT :limit;
