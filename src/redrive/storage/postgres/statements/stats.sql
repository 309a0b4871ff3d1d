-- purpose: counters of every node since a slot, and the totals
SELECT slot, counters FROM queue_stats WHERE queue_id = $1::bigint AND (slot >= $2::bigint OR slot = 0)
