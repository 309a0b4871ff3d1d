-- purpose: messages of a job within a slice of numbers; without an index on purpose
SELECT message_id FROM messages WHERE coalesce(job_key, message_id) = ?1 AND id > ?2 AND id <= ?3 ORDER BY id
