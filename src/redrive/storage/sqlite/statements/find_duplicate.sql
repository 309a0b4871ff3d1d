-- purpose: the message that a deduplication key was first seen with
SELECT message_id FROM dedup WHERE queue_id = ? AND hash = ? AND until_ms > ?
