-- purpose: a new queue
INSERT INTO queues (name, kind, state, policy, dead_letter_queue, implicit, holds_dead, created_ms, tokens, tokens_at_ms, policy_count)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
