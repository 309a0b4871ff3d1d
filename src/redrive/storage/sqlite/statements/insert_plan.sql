-- purpose: a new plan; its number comes back
INSERT INTO plans (plan_id, queue, state, finished_ms, made_with, progress) VALUES (?, ?, ?, ?, ?, ?) RETURNING number
