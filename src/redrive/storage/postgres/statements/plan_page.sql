-- purpose: plans, newest first
-- index: plans_pkey
SELECT number, plan_id::text, queue, state, made_with, progress FROM plans
WHERE number < $1::bigint AND ($2::text IS NULL OR queue = $2) AND ($3::text IS NULL OR state = $3)
ORDER BY number DESC LIMIT $4::bigint
