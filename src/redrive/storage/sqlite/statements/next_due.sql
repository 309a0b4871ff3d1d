-- purpose: when the next message of one level is due
-- index: ready
SELECT due_ms FROM messages WHERE queue_id = ? AND slot = 0 AND priority = ? ORDER BY due_ms LIMIT 1
