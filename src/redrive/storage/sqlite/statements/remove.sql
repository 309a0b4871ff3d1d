-- purpose: delete a message
-- fenced by: delivery
DELETE FROM messages WHERE id = ? AND delivery = ?
