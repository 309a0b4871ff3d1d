-- purpose: a queue's last step of a delete
DELETE FROM fingerprint_policies WHERE queue_id = $1::bigint
