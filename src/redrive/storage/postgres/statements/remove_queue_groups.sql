-- purpose: a queue's last step of a delete
DELETE FROM groups WHERE queue_id = $1::bigint
