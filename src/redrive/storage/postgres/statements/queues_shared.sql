-- purpose: queues of these names, held against deletion; never waited for by a lease; in the order of queues_leasing
-- index: queues_name_key
WITH held AS MATERIALIZED (
    SELECT id, name, kind, state, policy, dead_letter_queue, implicit, holds_dead, created_ms, tokens, tokens_at_ms, policy_count, xmin::text::bigint AS version
    FROM queues WHERE name = ANY ($1::text[]) ORDER BY limited DESC, id FOR KEY SHARE)
SELECT *, pg_current_xact_id_if_assigned()::text FROM held
