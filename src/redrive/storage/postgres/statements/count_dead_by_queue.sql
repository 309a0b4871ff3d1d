-- purpose: open dead letters in a dead-letter queue
-- index: open_by_queue
SELECT count(*), min(d.dead_ms) FROM dead_letters d WHERE d.dlq_id = $1::bigint AND d.closed_ms IS NULL
