-- purpose: dead letters at rest whose retention is over, oldest first
-- index: aging_dead
SELECT message_id FROM messages WHERE slot <> 1 AND dead = 1 AND expires_ms <= ? ORDER BY expires_ms LIMIT ?
