-- purpose: take a fingerprint policy back
DELETE FROM fingerprint_policies WHERE queue_id = $1::bigint AND fingerprint = $2::text
