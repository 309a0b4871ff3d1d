-- purpose: the audit log in the order of its chain
SELECT at_ms, actor, action, target, reason, selection_hash, outcome, detail, id, on_behalf_of, hash
FROM audit WHERE id > $1::bigint ORDER BY id LIMIT $2::bigint
