-- purpose: to another queue
-- fenced by: delivery
UPDATE messages SET slot = ?, queue_id = ?, priority = ?, due_ms = ?, expires_ms = ?, attempt = ?, releases = ?,
    ended = ?, cancelled = ?, dead = ?, group_id = ?, position = ?, first_failed_ms = ?, redriven = ?
WHERE id = ? AND delivery = ?
