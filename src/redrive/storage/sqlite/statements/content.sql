-- purpose: headers and body of a message
SELECT m.headers, b.body FROM messages m JOIN bodies b ON b.id = m.id WHERE m.id = ?
