-- purpose: record an answer
INSERT INTO idempotency (slot, key_hash, request_hash, answer) VALUES (?, ?, ?, ?)
ON CONFLICT (slot, key_hash) DO UPDATE SET request_hash = excluded.request_hash, answer = excluded.answer
