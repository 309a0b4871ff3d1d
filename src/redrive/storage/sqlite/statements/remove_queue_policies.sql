-- purpose: fingerprint policies of a deleted queue
DELETE FROM fingerprint_policies WHERE queue_id = ?
