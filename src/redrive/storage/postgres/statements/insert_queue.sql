-- purpose: a new queue; no row when another node has just made one of this name
INSERT INTO queues (name, kind, state, policy, dead_letter_queue, implicit, holds_dead, created_ms, tokens, tokens_at_ms, limited, policy_count)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::text, $6::boolean, $7::boolean, $8::bigint, $9::float8, $10::bigint, $11::boolean, $12::integer)
ON CONFLICT (name) DO NOTHING RETURNING id, xmin::text::bigint
