-- purpose: record answers in key order; none comes back for a key that another node has just recorded
INSERT INTO idempotency AS i (slot, key_hash, request_hash, answer)
SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[]) AS w (slot, key_hash, request_hash, answer)
ORDER BY 1, 2
ON CONFLICT (slot, key_hash) DO UPDATE SET request_hash = excluded.request_hash, answer = excluded.answer
WHERE i.key_hash = ANY ($5::bytea[]) RETURNING 1
