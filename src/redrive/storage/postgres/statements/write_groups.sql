-- purpose: write group rows that this transaction holds
-- index: groups_pkey
UPDATE groups g SET live = w.live, next_position = w.next_position, head_due_ms = w.head_due_ms, busy = w.busy, blocked = w.blocked
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
    AS w (id, live, next_position, head_due_ms, busy, blocked)
WHERE g.id = w.id
