-- purpose: when the next group head is due
-- index: due_groups
SELECT head_due_ms FROM groups WHERE queue_id = $1::bigint AND head_due_ms IS NOT NULL ORDER BY head_due_ms LIMIT 1
