-- purpose: queues of these numbers, held against deletion; those with a limit when leasing are held alone
-- index: queues_pkey
WITH limited AS MATERIALIZED (
    SELECT id, name, kind, state, policy, dead_letter_queue, implicit, holds_dead, created_ms, tokens, tokens_at_ms, xmin::text::bigint AS version
    FROM queues WHERE id = ANY ($1::bigint[]) AND limited ORDER BY id FOR NO KEY UPDATE),
free AS MATERIALIZED (
    SELECT id, name, kind, state, policy, dead_letter_queue, implicit, holds_dead, created_ms, tokens, tokens_at_ms, xmin::text::bigint AS version
    FROM queues WHERE id = ANY ($1::bigint[]) AND NOT limited ORDER BY id FOR KEY SHARE)
SELECT * FROM limited UNION ALL SELECT * FROM free
