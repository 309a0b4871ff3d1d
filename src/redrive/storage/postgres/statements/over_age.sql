-- purpose: dead letters at rest whose retention is over, oldest first
-- index: aging_dead
SELECT message_id::text FROM messages WHERE slot <> 1 AND dead AND expires_ms <= $1::bigint ORDER BY expires_ms, id LIMIT $2::bigint
