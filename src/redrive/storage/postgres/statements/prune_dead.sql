-- purpose: closed dead-letter records of gone messages
-- index: closed
WITH over AS MATERIALIZED (
    SELECT d.message_id, d.redrive_count FROM dead_letters d WHERE d.closed_ms < $1::bigint AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.message_id = d.message_id) ORDER BY d.closed_ms LIMIT $2::bigint FOR UPDATE OF d SKIP LOCKED),
gone AS (DELETE FROM dead_letters x USING over o WHERE x.message_id = o.message_id AND x.redrive_count = o.redrive_count RETURNING 1)
SELECT count(*) FROM gone
