-- purpose: queues of these names, each held alone; in the order of queues_leasing
-- index: queues_name_key
WITH limited AS MATERIALIZED (
    SELECT id, name, kind, state, policy, dead_letter_queue, implicit, holds_dead, created_ms, tokens, tokens_at_ms, policy_count, xmin::text::bigint AS version
    FROM queues WHERE name = ANY ($1::text[]) AND limited ORDER BY id FOR UPDATE),
free AS MATERIALIZED (
    SELECT id, name, kind, state, policy, dead_letter_queue, implicit, holds_dead, created_ms, tokens, tokens_at_ms, policy_count, xmin::text::bigint AS version
    FROM queues WHERE name = ANY ($1::text[]) AND NOT limited ORDER BY id FOR UPDATE)
SELECT *, pg_current_xact_id_if_assigned()::text FROM limited UNION ALL SELECT *, pg_current_xact_id_if_assigned()::text FROM free
