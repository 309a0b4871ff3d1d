-- purpose: a page of the causes of open dead letters, of a source and in a dead-letter queue
-- index: open_by_origin, open_by_queue
SELECT fingerprint, count(*), min(dead_ms), max(dead_ms), min(message_id) FROM (
    SELECT d.fingerprint, d.dead_ms, d.message_id FROM dead_letters d INDEXED BY open_by_origin
    WHERE d.origin = :queue AND d.closed_ms IS NULL
        AND (:reason IS NULL OR d.reason = :reason)
        AND (:error_type IS NULL OR d.error_type = :error_type)
        AND (:fingerprint IS NULL OR d.fingerprint = :fingerprint)
        AND (:job_key IS NULL OR d.job_key = :job_key)
        AND (:since_ms IS NULL OR d.dead_ms >= :since_ms)
        AND (:until_ms IS NULL OR d.dead_ms < :until_ms)
        AND (:attempts_min IS NULL OR d.attempts >= :attempts_min)
        AND (:text IS NULL OR instr(d.error, CAST(:text AS BLOB)) > 0)
        AND (:message_ids IS NULL OR d.message_id IN (SELECT value FROM json_each(:message_ids)))
    UNION ALL
    SELECT d.fingerprint, d.dead_ms, d.message_id FROM dead_letters d INDEXED BY open_by_queue
    WHERE d.dlq_id = (SELECT id FROM queues WHERE name = :queue) AND d.closed_ms IS NULL
        AND (:reason IS NULL OR d.reason = :reason)
        AND (:error_type IS NULL OR d.error_type = :error_type)
        AND (:fingerprint IS NULL OR d.fingerprint = :fingerprint)
        AND (:job_key IS NULL OR d.job_key = :job_key)
        AND (:since_ms IS NULL OR d.dead_ms >= :since_ms)
        AND (:until_ms IS NULL OR d.dead_ms < :until_ms)
        AND (:attempts_min IS NULL OR d.attempts >= :attempts_min)
        AND (:text IS NULL OR instr(d.error, CAST(:text AS BLOB)) > 0)
        AND (:message_ids IS NULL OR d.message_id IN (SELECT value FROM json_each(:message_ids))))
GROUP BY fingerprint ORDER BY count(*) DESC, coalesce(fingerprint, '') LIMIT :limit OFFSET :offset
