-- purpose: statistics slots that are over; slot 0 holds the totals
-- index: stats_by_slot
DELETE FROM queue_stats WHERE (queue_id, slot, node) IN (
    SELECT queue_id, slot, node FROM queue_stats WHERE slot > 0 AND slot < ? LIMIT ?)
