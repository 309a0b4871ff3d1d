-- purpose: a page of queues by name
SELECT id, name, kind, state, policy, dead_letter_queue, implicit, holds_dead, created_ms, tokens, tokens_at_ms, policy_count FROM queues WHERE name > $1::text AND state <> 'deleting' ORDER BY name LIMIT $2::bigint
