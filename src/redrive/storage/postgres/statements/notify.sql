-- purpose: tell the other nodes that queues hold something
SELECT pg_notify($1::text, $2::text)::text
