-- purpose: back to rest in its queue
-- fenced by: delivery
-- index: messages_pkey
UPDATE messages m SET slot = w.slot, due_ms = w.due_ms, attempt = w.attempt, releases = w.releases, ended = w.ended,
    first_failed_ms = w.first_failed_ms
FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::bigint[], $5::int[], $6::int[], $7::int[], $8::bigint[])
    AS w (id, delivery, slot, due_ms, attempt, releases, ended, first_failed_ms)
WHERE m.id = w.id AND m.delivery = w.delivery
