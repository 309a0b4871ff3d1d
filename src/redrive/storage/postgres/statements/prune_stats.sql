-- purpose: statistics slots that are over; slot 0 holds the totals
-- index: stats_by_slot
WITH over AS MATERIALIZED (
    SELECT t.queue_id, t.slot, t.node FROM queue_stats t WHERE t.slot > 0 AND t.slot < $1::bigint ORDER BY t.slot LIMIT $2::bigint FOR UPDATE OF t SKIP LOCKED),
gone AS (DELETE FROM queue_stats x USING over o WHERE x.queue_id = o.queue_id AND x.slot = o.slot AND x.node = o.node RETURNING 1)
SELECT count(*) FROM gone
