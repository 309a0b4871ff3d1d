-- purpose: the messages that deduplication keys were first seen with
-- index: dedup_pkey
SELECT d.queue_id, d.hash, d.message_id::text FROM unnest($1::bigint[], $2::bytea[]) AS w (queue_id, hash)
JOIN dedup d ON d.queue_id = w.queue_id AND d.hash = w.hash WHERE d.until_ms > $3::bigint
