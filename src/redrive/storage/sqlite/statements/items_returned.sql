-- purpose: members that were rejected with the fingerprint they had died of, since a time, first first, up to a limit
-- index: items_returned
SELECT message_id, died_of FROM plan_items INDEXED BY items_returned WHERE plan = ? AND returned = 1 AND failed_ms >= ? ORDER BY n LIMIT ?
