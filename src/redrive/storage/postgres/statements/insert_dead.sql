-- purpose: new dead-letter records; one may be closed already, by the batch that makes it
INSERT INTO dead_letters (message_id, delivery, dlq_id, origin, source_group, source_position, blocks, job_key, reason,
    error_type, error, fingerprint, attempts, first_failed_ms, dead_ms, expires_ms, redrive_count,
    closed_ms, closed_by)
SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::boolean[], $8::text[],
    $9::text[], $10::text[], $11::bytea[], $12::text[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::int[],
    $18::bigint[], $19::text[])
