-- purpose: new messages, numbered in the order given
-- transition: publish
INSERT INTO messages (message_id, queue_id, slot, priority, due_ms, expires_ms, group_id, position, job_key, enqueued_ms,
    headers, body, body_hash)
SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::int[], $4::int[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::text[], $10::bigint[], $11::bytea[], $12::bytea[], $13::bytea[])
