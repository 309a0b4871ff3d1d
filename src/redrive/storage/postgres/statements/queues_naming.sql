-- purpose: who names this queue as its dead-letter queue
SELECT name FROM queues WHERE dead_letter_queue = $1::text ORDER BY name
