-- purpose: one queue
SELECT id, name, kind, state, policy, dead_letter_queue, implicit, holds_dead, created_ms, tokens, tokens_at_ms, policy_count FROM queues WHERE name = $1::text
