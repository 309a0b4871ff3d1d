-- purpose: the highest number that a message has
SELECT max(id) FROM messages
