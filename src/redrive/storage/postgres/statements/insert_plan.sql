-- purpose: a new plan; its number comes back
INSERT INTO plans (plan_id, queue, state, finished_ms, made_with, progress)
VALUES ($1::uuid, $2::text, $3::text, $4::bigint, $5::bytea, $6::bytea) RETURNING number
