-- purpose: one plan
-- index: sqlite_autoindex_plans_1
SELECT number, plan_id, queue, state, made_with, progress FROM plans WHERE plan_id = ?
