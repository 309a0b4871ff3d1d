-- purpose: a queue's last step of a delete
DELETE FROM queue_stats WHERE queue_id = $1::bigint
