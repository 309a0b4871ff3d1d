-- purpose: empty groups that nothing holds
-- index: idle_groups
WITH over AS MATERIALIZED (
    SELECT t.id FROM groups t WHERE t.live = 0 AND t.blocked = 0 ORDER BY t.id LIMIT $1::bigint FOR UPDATE OF t SKIP LOCKED),
gone AS (DELETE FROM groups x USING over o WHERE x.id = o.id RETURNING 1)
SELECT count(*) FROM gone
