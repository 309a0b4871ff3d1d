-- purpose: messages marked dead without an open record, and open records without a dead message
SELECT 'message ' || m.message_id || ' is marked dead and has no open dead-letter record' FROM messages m
WHERE m.dead = 1 AND NOT EXISTS (SELECT 1 FROM dead_letters d WHERE d.message_id = m.message_id AND d.closed_ms IS NULL)
UNION ALL
SELECT 'dead-letter record of ' || d.message_id || ' is open and no message is marked dead' FROM dead_letters d
WHERE d.closed_ms IS NULL AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.message_id = d.message_id AND m.dead = 1)
LIMIT 20
