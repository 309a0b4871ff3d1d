-- purpose: attempts of gone messages
-- index: attempts_by_end
WITH over AS MATERIALIZED (
    SELECT a.message_id, a.delivery FROM attempts a WHERE a.ended_ms < $1::bigint AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.message_id = a.message_id) ORDER BY a.ended_ms LIMIT $2::bigint FOR UPDATE OF a SKIP LOCKED),
gone AS (DELETE FROM attempts x USING over o WHERE x.message_id = o.message_id AND x.delivery = o.delivery RETURNING 1)
SELECT count(*) FROM gone
