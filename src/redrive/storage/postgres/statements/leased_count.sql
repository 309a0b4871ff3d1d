-- purpose: leased messages of a queue, up to a bound
-- index: leased
SELECT count(*) FROM (SELECT 1 FROM messages WHERE queue_id = $1::bigint AND slot = 1 LIMIT $2::bigint) found
