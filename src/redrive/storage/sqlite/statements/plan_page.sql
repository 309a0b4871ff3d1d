-- purpose: plans, newest first
SELECT number, plan_id, queue, state, made_with, progress FROM plans
WHERE number < :before AND (:queue IS NULL OR queue = :queue) AND (:state IS NULL OR state = :state)
ORDER BY number DESC LIMIT :limit
