-- purpose: to another queue
-- fenced by: delivery
-- index: messages_pkey
UPDATE messages m SET slot = w.slot, queue_id = w.queue_id, priority = w.priority, due_ms = w.due_ms,
    expires_ms = w.expires_ms, attempt = w.attempt, releases = w.releases, ended = w.ended, cancelled = w.cancelled,
    dead = w.dead, group_id = w.group_id, position = w.position, first_failed_ms = w.first_failed_ms, redriven = w.redriven
FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::bigint[], $5::int[], $6::bigint[], $7::bigint[], $8::int[], $9::int[],
    $10::int[], $11::boolean[], $12::boolean[], $13::bigint[], $14::bigint[], $15::bigint[], $16::int[])
    AS w (id, delivery, slot, queue_id, priority, due_ms, expires_ms, attempt, releases, ended, cancelled, dead, group_id,
    position, first_failed_ms, redriven)
WHERE m.id = w.id AND m.delivery = w.delivery
