-- purpose: back to rest in its queue
-- fenced by: delivery
UPDATE messages SET slot = ?, due_ms = ?, attempt = ?, releases = ?, ended = ?, first_failed_ms = ?
WHERE id = ? AND delivery = ?
