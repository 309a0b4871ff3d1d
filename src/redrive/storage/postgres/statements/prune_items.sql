-- purpose: members of plans that ended long ago; one slice
-- index: ended_plans
WITH over AS (SELECT i.plan, i.n FROM plans p JOIN plan_items i ON i.plan = p.number
    WHERE p.finished_ms IS NOT NULL AND p.finished_ms < $1::bigint ORDER BY p.finished_ms, i.plan, i.n LIMIT $2::bigint FOR UPDATE OF i SKIP LOCKED),
gone AS (DELETE FROM plan_items i USING over o WHERE i.plan = o.plan AND i.n = o.n RETURNING 1)
SELECT count(*) FROM gone
