-- purpose: take a fingerprint policy back
DELETE FROM fingerprint_policies WHERE queue_id = ? AND fingerprint = ?
