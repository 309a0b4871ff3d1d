-- purpose: a page of open dead letters of a source
-- index: open_by_origin
SELECT d.message_id::text, d.dead_ms FROM dead_letters d
WHERE d.origin = $1::text AND d.closed_ms IS NULL
    AND (d.dead_ms, d.message_id) > ($12::bigint, $13::uuid)
    AND ($2::text IS NULL OR d.reason = $2)
    AND ($3::text IS NULL OR d.error_type = $3)
    AND ($4::text IS NULL OR d.fingerprint = $4)
    AND ($5::text IS NULL OR d.job_key = $5)
    AND ($6::bigint IS NULL OR d.dead_ms >= $6)
    AND ($7::bigint IS NULL OR d.dead_ms < $7)
    AND ($8::bigint IS NULL OR d.attempts >= $8)
    AND ($9::bytea IS NULL OR position($9 IN d.error) > 0)
    AND ($10::uuid[] IS NULL OR d.message_id = ANY ($10))
    AND (NOT $14::boolean OR NOT EXISTS (
        SELECT 1 FROM queues q JOIN fingerprint_policies p ON p.queue_id = q.id
        WHERE q.name = d.origin AND p.fingerprint = d.fingerprint AND p.policy = 'hold'))
ORDER BY d.dead_ms, d.message_id LIMIT $11::bigint
