-- purpose: the liveness tick; ours is not needed while another node writes its own, or when one has since ours was read ($2)
UPDATE clock SET tick_ms = $1::bigint
WHERE one = (SELECT one FROM clock WHERE tick_ms IS NOT DISTINCT FROM $2::bigint FOR UPDATE SKIP LOCKED)
