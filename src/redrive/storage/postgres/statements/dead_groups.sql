-- purpose: a page of the causes of open dead letters, of a source and in a dead-letter queue
-- index: open_by_cause, open_by_queue
SELECT fingerprint, count(*), min(dead_ms), max(dead_ms), min(message_id::text) FROM (
    SELECT d.fingerprint, d.dead_ms, d.message_id FROM dead_letters d
    WHERE d.origin = $1::text AND d.closed_ms IS NULL
        AND ($2::text IS NULL OR d.reason = $2)
        AND ($3::text IS NULL OR d.error_type = $3)
        AND ($4::text IS NULL OR d.fingerprint = $4)
        AND ($5::text IS NULL OR d.job_key = $5)
        AND ($6::bigint IS NULL OR d.dead_ms >= $6)
        AND ($7::bigint IS NULL OR d.dead_ms < $7)
        AND ($8::bigint IS NULL OR d.attempts >= $8)
        AND ($9::bytea IS NULL OR position($9 IN d.error) > 0)
        AND ($10::uuid[] IS NULL OR d.message_id = ANY ($10))
    UNION ALL
    SELECT d.fingerprint, d.dead_ms, d.message_id FROM dead_letters d
    WHERE d.dlq_id = (SELECT id FROM queues WHERE name = $1::text) AND d.closed_ms IS NULL
        AND ($2::text IS NULL OR d.reason = $2)
        AND ($3::text IS NULL OR d.error_type = $3)
        AND ($4::text IS NULL OR d.fingerprint = $4)
        AND ($5::text IS NULL OR d.job_key = $5)
        AND ($6::bigint IS NULL OR d.dead_ms >= $6)
        AND ($7::bigint IS NULL OR d.dead_ms < $7)
        AND ($8::bigint IS NULL OR d.attempts >= $8)
        AND ($9::bytea IS NULL OR position($9 IN d.error) > 0)
        AND ($10::uuid[] IS NULL OR d.message_id = ANY ($10))) AS matching
GROUP BY fingerprint ORDER BY count(*) DESC, coalesce(fingerprint, '') COLLATE "C" LIMIT $11::bigint OFFSET $12::bigint
