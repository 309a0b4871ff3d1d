-- purpose: headers and body of a message
SELECT headers, body FROM messages WHERE id = $1::bigint
