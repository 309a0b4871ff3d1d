-- purpose: attempts of gone messages
-- index: attempts_by_end
DELETE FROM attempts WHERE (message_id, delivery) IN (
    SELECT a.message_id, a.delivery FROM attempts a WHERE a.ended_ms < ?
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.message_id = a.message_id) ORDER BY a.ended_ms LIMIT ?)
