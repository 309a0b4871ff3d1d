-- purpose: the last number of a slice of all messages
SELECT max(id) FROM (SELECT id FROM messages WHERE id > ? ORDER BY id LIMIT ?)
