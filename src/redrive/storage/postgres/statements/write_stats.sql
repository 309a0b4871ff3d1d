-- purpose: this node's counters
INSERT INTO queue_stats (queue_id, slot, node, counters)
SELECT w.queue_id, w.slot, $1::text, w.counters
FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS w (queue_id, slot, counters) ORDER BY 1, 2
ON CONFLICT (queue_id, slot, node) DO UPDATE SET counters = excluded.counters
