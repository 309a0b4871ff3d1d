-- purpose: a page of open dead letters by queue
-- index: open_by_queue
SELECT d.message_id, d.dead_ms FROM dead_letters d INDEXED BY open_by_queue
WHERE d.dlq_id = (SELECT id FROM queues WHERE name = :queue) AND (d.dead_ms, d.message_id) > (:after_ms, :after_id) AND d.closed_ms IS NULL
    AND (:reason IS NULL OR d.reason = :reason)
    AND (:error_type IS NULL OR d.error_type = :error_type)
    AND (:fingerprint IS NULL OR d.fingerprint = :fingerprint)
    AND (:job_key IS NULL OR d.job_key = :job_key)
    AND (:since_ms IS NULL OR d.dead_ms >= :since_ms)
    AND (:until_ms IS NULL OR d.dead_ms < :until_ms)
    AND (:attempts_min IS NULL OR d.attempts >= :attempts_min)
    AND (:text IS NULL OR instr(d.error, CAST(:text AS BLOB)) > 0)
    AND (:message_ids IS NULL OR d.message_id IN (SELECT value FROM json_each(:message_ids)))
    AND (NOT :without_held OR NOT EXISTS (
        SELECT 1 FROM queues q JOIN fingerprint_policies p ON p.queue_id = q.id
        WHERE q.name = d.origin AND p.fingerprint = d.fingerprint AND p.policy = 'hold'))
ORDER BY d.dead_ms, d.message_id LIMIT :limit
