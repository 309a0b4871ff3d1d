-- purpose: a lease's end or its cancel mark
-- fenced by: delivery
UPDATE messages SET lease_until_ms = ?, cancelled = ? WHERE id = ? AND delivery = ?
