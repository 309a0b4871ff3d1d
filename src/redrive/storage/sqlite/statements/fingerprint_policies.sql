-- purpose: the fingerprint policies of a queue
-- index: PRIMARY
SELECT fingerprint, policy, reason, actor, set_ms FROM fingerprint_policies WHERE queue_id = ? ORDER BY fingerprint
