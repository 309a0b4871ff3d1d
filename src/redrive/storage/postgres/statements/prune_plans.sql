-- purpose: plans that ended long ago and have no members any more; one slice
-- index: ended_plans
WITH over AS (SELECT p.number FROM plans p WHERE p.finished_ms IS NOT NULL AND p.finished_ms < $1::bigint
    AND NOT EXISTS (SELECT 1 FROM plan_items i WHERE i.plan = p.number)
    ORDER BY p.finished_ms, p.number LIMIT $2::bigint FOR UPDATE OF p SKIP LOCKED),
gone AS (DELETE FROM plans p USING over o WHERE p.number = o.number RETURNING 1)
SELECT count(*) FROM gone
