-- purpose: which of these messages exist, and in which groups
-- index: messages_message_id_key
SELECT m.message_id::text, m.group_id FROM messages m WHERE m.message_id = ANY ($1::uuid[])
