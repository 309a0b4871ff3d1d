-- purpose: one operator action
INSERT INTO audit (at_ms, actor, action, target, reason, selection_hash, outcome, detail, id, on_behalf_of, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
