-- purpose: members of plans that ended long ago; one slice
-- index: ended_plans
DELETE FROM plan_items WHERE (plan, n) IN (SELECT i.plan, i.n FROM plans p INDEXED BY ended_plans
    JOIN plan_items i ON i.plan = p.number WHERE p.finished_ms IS NOT NULL AND p.finished_ms < ? LIMIT ?)
