-- purpose: messages of a job within a slice of numbers; without an index on purpose
SELECT message_id::text FROM messages
WHERE coalesce(job_key, message_id::text) = $1::text AND id > $2::int8 AND id <= $3::int8 ORDER BY id
