-- purpose: deduplication windows that are over
-- index: dedup_until
DELETE FROM dedup WHERE (queue_id, hash) IN (SELECT queue_id, hash FROM dedup WHERE until_ms <= ? ORDER BY until_ms LIMIT ?)
