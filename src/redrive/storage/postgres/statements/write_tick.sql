-- purpose: the liveness tick; while another node writes it, ours is not needed
UPDATE clock SET tick_ms = $1::bigint WHERE one = (SELECT one FROM clock FOR UPDATE SKIP LOCKED)
