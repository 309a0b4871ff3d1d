-- purpose: groups of these numbers that no other transaction holds, locked
-- index: groups_pkey
SELECT g.id, g.queue_id, g.key, g.live, g.next_position, g.head_due_ms, g.busy, g.blocked
FROM groups g WHERE g.id = ANY ($1::bigint[]) ORDER BY g.queue_id, g.key FOR UPDATE SKIP LOCKED
