-- purpose: a queue's last step of a delete
DELETE FROM queues WHERE id = $1::bigint
