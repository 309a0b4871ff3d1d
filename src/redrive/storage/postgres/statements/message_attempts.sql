-- purpose: the attempt history of a message
SELECT message_id::text, delivery, attempt, consumer_id, leased_ms, ended_ms, ended, error, fingerprint
FROM attempts WHERE message_id = $1::uuid ORDER BY delivery
