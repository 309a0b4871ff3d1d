-- purpose: deduplication of a deleted queue
DELETE FROM dedup WHERE queue_id = ?
