-- purpose: the body of a new message
INSERT INTO bodies (id, body) VALUES (?, ?)
