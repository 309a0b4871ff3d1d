-- purpose: what is left of messages removed unfinished
INSERT INTO tombstones (message_id, queue, job_key, cause, reason, fingerprint, enqueued_ms, removed_ms, body_hash,
    first_failed_ms, dead_ms, archive)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bytea[],
    $10::bigint[], $11::bigint[], $12::text[])
ORDER BY 1 ON CONFLICT (message_id) DO NOTHING
