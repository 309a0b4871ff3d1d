-- purpose: queues of these numbers, held against deletion; refused when another transaction holds one alone
-- index: queues_pkey
WITH held AS MATERIALIZED (
    SELECT id, name, kind, state, policy, dead_letter_queue, implicit, holds_dead, created_ms, tokens, tokens_at_ms, policy_count, xmin::text::bigint AS version
    FROM queues WHERE id = ANY ($1::bigint[]) ORDER BY limited DESC, id FOR KEY SHARE NOWAIT)
SELECT *, pg_current_xact_id_if_assigned()::text FROM held
