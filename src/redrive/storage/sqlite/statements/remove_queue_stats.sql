-- purpose: statistics of a deleted queue
DELETE FROM queue_stats WHERE queue_id = ?
