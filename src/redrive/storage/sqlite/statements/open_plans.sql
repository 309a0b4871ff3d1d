-- purpose: plans that freeze or run, oldest first
-- index: open_plans
SELECT number, plan_id, queue, state, made_with, progress FROM plans INDEXED BY open_plans
WHERE state IN ('freezing', 'running') ORDER BY number LIMIT ?
