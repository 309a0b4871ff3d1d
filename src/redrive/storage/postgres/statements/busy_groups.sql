-- purpose: the heads of these groups are leased
-- index: groups_pkey
UPDATE groups g SET head_due_ms = NULL, busy = w.busy FROM unnest($1::bigint[], $2::bigint[]) AS w (id, busy) WHERE g.id = w.id
