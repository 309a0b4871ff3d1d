-- purpose: write a queue row
UPDATE queues SET name = ?, kind = ?, state = ?, policy = ?, dead_letter_queue = ?, implicit = ?, holds_dead = ?,
    created_ms = ?, tokens = ?, tokens_at_ms = ?, policy_count = ? WHERE id = ?
