-- purpose: what became of a member
UPDATE plan_items SET outcome = ?, sent_ms = ?, finished_ms = ?, failures = ?, failed_ms = ?, returned = ?, detail = ?
WHERE plan = ? AND n = ?
