-- purpose: one plan, locked; nobody waits for it
-- index: plans_plan_id_key
SELECT number, plan_id::text, queue, state, made_with, progress FROM plans WHERE plan_id = $1::uuid FOR UPDATE SKIP LOCKED
