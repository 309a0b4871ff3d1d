-- purpose: recorded answers that are over
-- index: idempotency_pkey
WITH over AS MATERIALIZED (
    SELECT t.slot, t.key_hash FROM idempotency t WHERE t.slot < $1::bigint ORDER BY t.slot, t.key_hash LIMIT $2::bigint FOR UPDATE OF t SKIP LOCKED),
gone AS (DELETE FROM idempotency x USING over o WHERE x.slot = o.slot AND x.key_hash = o.key_hash RETURNING 1)
SELECT count(*) FROM gone
