-- purpose: the last number of a slice of all messages
SELECT max(id) FROM (SELECT id FROM messages WHERE id > $1::int8 ORDER BY id LIMIT $2::int8) AS slice
