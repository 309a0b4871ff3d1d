-- purpose: a queue's last step of a delete
DELETE FROM dedup WHERE queue_id = $1::bigint
