-- purpose: messages of a job that were dead letters, or left a tombstone
-- index: dead_by_job, tombstones_by_job
SELECT message_id::text FROM (
    (SELECT DISTINCT message_id FROM dead_letters
        WHERE job_key = $1::text AND ($2::uuid IS NULL OR message_id > $2::uuid) ORDER BY message_id LIMIT $3::int8)
    UNION
    (SELECT message_id FROM tombstones
        WHERE job_key = $1::text AND ($2::uuid IS NULL OR message_id > $2::uuid) ORDER BY message_id LIMIT $3::int8)
) AS found ORDER BY message_id LIMIT $3::int8
