-- purpose: the fingerprint policies of a queue
-- index: fingerprint_policies_pkey
SELECT fingerprint, policy, reason, actor, set_ms FROM fingerprint_policies WHERE queue_id = $1::bigint ORDER BY fingerprint
