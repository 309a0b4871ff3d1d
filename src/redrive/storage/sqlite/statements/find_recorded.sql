-- purpose: a recorded answer, the newest slot first
-- index: PRIMARY
SELECT request_hash, answer FROM idempotency WHERE slot = ? AND key_hash = ?
