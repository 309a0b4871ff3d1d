-- purpose: open dead letters in a dead-letter queue
-- index: open_by_queue
SELECT count(*), min(dead_ms) FROM dead_letters WHERE dlq_id = ? AND closed_ms IS NULL
