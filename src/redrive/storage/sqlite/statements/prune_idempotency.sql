-- purpose: recorded answers that are over
-- index: PRIMARY
DELETE FROM idempotency WHERE (slot, key_hash) IN (SELECT slot, key_hash FROM idempotency WHERE slot < ? LIMIT ?)
