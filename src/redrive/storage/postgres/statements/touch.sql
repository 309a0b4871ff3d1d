-- purpose: a lease's end or its cancel mark
-- fenced by: delivery
-- index: messages_pkey
UPDATE messages m SET lease_until_ms = w.lease_until_ms, cancelled = w.cancelled
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[]) AS w (id, delivery, lease_until_ms, cancelled)
WHERE m.id = w.id AND m.delivery = w.delivery
