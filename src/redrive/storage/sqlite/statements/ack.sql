-- purpose: remove a leased message of a plain queue
-- transition: ack
-- fenced by: handle
-- index: sqlite_autoindex_messages_1
DELETE FROM messages WHERE message_id = ? AND handle = ? AND slot = 1 AND group_id IS NULL AND dead = 0 AND cancelled = 0
RETURNING id, message_id, queue_id, leased_ms, attempt
