-- purpose: the right to write a queue row; refused when another transaction holds it
-- index: queues_pkey
SELECT id FROM queues WHERE id = $1::bigint FOR NO KEY UPDATE NOWAIT
