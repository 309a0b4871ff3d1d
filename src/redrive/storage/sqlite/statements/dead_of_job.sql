-- purpose: messages of a job that were dead letters, or left a tombstone
-- index: dead_by_job, tombstones_by_job
SELECT message_id FROM (
    SELECT message_id FROM (SELECT DISTINCT message_id FROM dead_letters INDEXED BY dead_by_job
        WHERE job_key = :job_key AND message_id > :after ORDER BY message_id LIMIT :limit)
    UNION
    SELECT message_id FROM (SELECT message_id FROM tombstones INDEXED BY tombstones_by_job
        WHERE job_key = :job_key AND message_id > :after ORDER BY message_id LIMIT :limit)
) ORDER BY message_id LIMIT :limit
