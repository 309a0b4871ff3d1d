-- purpose: write a queue row
-- fenced by: version
UPDATE queues SET name = $1::text, kind = $2::text, state = $3::text, policy = $4::text, dead_letter_queue = $5::text,
    implicit = $6::boolean, holds_dead = $7::boolean, created_ms = $8::bigint, tokens = $9::float8,
    tokens_at_ms = $10::bigint, limited = $11::boolean, policy_count = $12::integer
WHERE id = $13::bigint AND xmin::text::bigint = $14::bigint RETURNING xmin::text::bigint
