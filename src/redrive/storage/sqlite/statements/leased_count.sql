-- purpose: leased messages of a queue, up to a bound
-- index: leased
SELECT count(*) FROM (SELECT 1 FROM messages WHERE queue_id = ? AND slot = 1 LIMIT ?)
