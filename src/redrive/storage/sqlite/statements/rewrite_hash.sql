-- purpose: the checksum of an edited message
-- fenced by: delivery
UPDATE messages SET body_hash = ? WHERE id = ? AND delivery = ?
