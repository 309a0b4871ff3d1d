-- purpose: a leased message of a plain queue that its holder acknowledges; remove_acked.sql removes it
-- transition: ack
-- fenced by: handle
-- index: sqlite_autoindex_messages_1
SELECT id, message_id, queue_id, leased_ms, attempt FROM messages
WHERE message_id = ? AND handle = ? AND slot = 1 AND group_id IS NULL AND dead = 0 AND cancelled = 0 AND redriven = 0
