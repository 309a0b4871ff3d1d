-- purpose: counters of every node since a slot, and the totals
SELECT slot, counters FROM queue_stats WHERE queue_id = ?1 AND (slot >= ?2 OR slot = 0)
