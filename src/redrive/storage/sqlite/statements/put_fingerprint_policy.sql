-- purpose: set a fingerprint policy
INSERT INTO fingerprint_policies (queue_id, fingerprint, policy, reason, actor, set_ms) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (queue_id, fingerprint) DO UPDATE SET policy = excluded.policy, reason = excluded.reason, actor = excluded.actor, set_ms = excluded.set_ms
