-- purpose: closed dead-letter records of gone messages
-- index: closed
DELETE FROM dead_letters WHERE (message_id, redrive_count) IN (
    SELECT d.message_id, d.redrive_count FROM dead_letters d WHERE d.closed_ms < ?
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.message_id = d.message_id) ORDER BY d.closed_ms LIMIT ?)
