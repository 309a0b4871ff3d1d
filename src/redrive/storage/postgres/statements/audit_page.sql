-- purpose: the audit log, newest first
SELECT at_ms, actor, action, target, reason, selection_hash, outcome, detail, id, on_behalf_of, hash
FROM audit WHERE ($1::bigint = 0 OR id < $1) ORDER BY id DESC LIMIT $2::bigint
