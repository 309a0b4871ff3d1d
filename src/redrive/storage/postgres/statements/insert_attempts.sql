-- purpose: failed deliveries; a row that is there already stays
INSERT INTO attempts (message_id, delivery, attempt, consumer_id, leased_ms, ended_ms, ended, error, fingerprint)
SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::bytea[], $9::text[])
ORDER BY 1, 2 ON CONFLICT (message_id, delivery) DO NOTHING
