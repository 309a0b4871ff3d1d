-- purpose: give rows that this transaction holds to a consumer
-- transition: lease
-- index: messages_pkey
UPDATE messages m SET slot = 1, attempt = m.attempt + 1, delivery = m.delivery + 1, handle = l.handle,
    leased_ms = $3::bigint, lease_until_ms = $4::bigint, consumer_id = $5::text
FROM unnest($1::bigint[], $2::text[]) AS l (id, handle) WHERE m.id = l.id
