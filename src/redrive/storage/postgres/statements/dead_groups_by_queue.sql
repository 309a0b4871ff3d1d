-- purpose: open dead letters in a dead-letter queue by cause
-- index: open_by_queue
SELECT d.fingerprint, d.reason, d.error_type, count(*), min(d.dead_ms), max(d.dead_ms),
    min(d.message_id::text)
FROM dead_letters d
WHERE d.dlq_id = (SELECT id FROM queues WHERE name = $1::text) AND d.closed_ms IS NULL
    AND ($2::text IS NULL OR d.reason = $2)
    AND ($3::text IS NULL OR d.error_type = $3)
    AND ($4::text IS NULL OR d.fingerprint = $4)
    AND ($5::text IS NULL OR d.job_key = $5)
    AND ($6::bigint IS NULL OR d.dead_ms >= $6)
    AND ($7::bigint IS NULL OR d.dead_ms < $7)
    AND ($8::bigint IS NULL OR d.attempts >= $8)
    AND ($9::bytea IS NULL OR position($9 IN d.error) > 0)
    AND ($10::uuid[] IS NULL OR d.message_id = ANY ($10))
GROUP BY d.fingerprint, d.reason, d.error_type ORDER BY count(*) DESC, d.fingerprint LIMIT $11::bigint
