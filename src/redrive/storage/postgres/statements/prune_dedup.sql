-- purpose: deduplication windows that are over
-- index: dedup_until
WITH over AS MATERIALIZED (
    SELECT t.queue_id, t.hash FROM dedup t WHERE t.until_ms <= $1::bigint ORDER BY t.until_ms LIMIT $2::bigint FOR UPDATE OF t SKIP LOCKED),
gone AS (DELETE FROM dedup x USING over o WHERE x.queue_id = o.queue_id AND x.hash = o.hash RETURNING 1)
SELECT count(*) FROM gone
