-- purpose: plans that ended long ago and have no members any more; one slice
-- index: ended_plans
DELETE FROM plans WHERE number IN (SELECT p.number FROM plans p INDEXED BY ended_plans
    WHERE p.finished_ms IS NOT NULL AND p.finished_ms < ?
        AND NOT EXISTS (SELECT 1 FROM plan_items i WHERE i.plan = p.number) LIMIT ?)
