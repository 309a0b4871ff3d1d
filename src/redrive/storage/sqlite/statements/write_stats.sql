-- purpose: this node's counters of one slot
INSERT INTO queue_stats (queue_id, slot, node, counters) VALUES (?, ?, ?, ?)
ON CONFLICT (queue_id, slot, node) DO UPDATE SET counters = excluded.counters
