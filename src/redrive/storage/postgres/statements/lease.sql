-- purpose: give rows that this transaction holds, and that therefore stay in their places, to a consumer
-- transition: lease
UPDATE messages m SET slot = 1, attempt = m.attempt + 1, delivery = m.delivery + 1, handle = l.handle,
    leased_ms = $3::bigint, lease_until_ms = $4::bigint, consumer_id = $5::text
FROM unnest($1::tid[], $2::text[]) AS l (place, handle) WHERE m.ctid = l.place
