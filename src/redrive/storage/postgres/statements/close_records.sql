-- purpose: close records, or note what became of them
-- index: dead_letters_pkey
UPDATE dead_letters d SET closed_ms = w.closed_ms, closed_by = w.closed_by, blocks = w.blocks, reason = w.reason
FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::text[], $5::boolean[], $6::text[])
    AS w (message_id, redrive_count, closed_ms, closed_by, blocks, reason)
WHERE d.message_id = w.message_id AND d.redrive_count = w.redrive_count
