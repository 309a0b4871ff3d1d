-- purpose: open a deduplication window
INSERT INTO dedup (queue_id, hash, message_id, until_ms) VALUES (?, ?, ?, ?)
ON CONFLICT (queue_id, hash) DO UPDATE SET message_id = excluded.message_id, until_ms = excluded.until_ms
