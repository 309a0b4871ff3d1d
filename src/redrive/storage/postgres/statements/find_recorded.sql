-- purpose: recorded answers, the newest slot last
-- index: idempotency_pkey
SELECT i.slot, i.key_hash, i.request_hash, i.answer FROM unnest($1::bigint[]) AS s (slot)
JOIN idempotency i ON i.slot = s.slot AND i.key_hash = ANY ($2::bytea[]) ORDER BY i.slot
