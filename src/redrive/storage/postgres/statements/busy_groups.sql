-- purpose: the heads of these groups, which this transaction holds and which therefore stay in their places, are leased
UPDATE groups g SET head_due_ms = NULL, busy = w.busy FROM unnest($1::tid[], $2::bigint[]) AS w (place, busy) WHERE g.ctid = w.place
