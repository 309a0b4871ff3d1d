-- purpose: open deduplication windows in key order; none comes back for a window that another node has just opened
INSERT INTO dedup AS d (queue_id, hash, message_id, until_ms)
SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::uuid[], $4::bigint[]) AS w (queue_id, hash, message_id, until_ms)
ORDER BY 1, 2
ON CONFLICT (queue_id, hash) DO UPDATE SET message_id = excluded.message_id, until_ms = excluded.until_ms
WHERE d.until_ms <= $5::bigint RETURNING 1
