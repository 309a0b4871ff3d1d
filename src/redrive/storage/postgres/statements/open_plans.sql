-- purpose: plans that freeze or run, oldest first
-- index: open_plans
SELECT number, plan_id::text, queue, state, made_with, progress FROM plans WHERE state IN ('freezing', 'running') ORDER BY number LIMIT $1::bigint
