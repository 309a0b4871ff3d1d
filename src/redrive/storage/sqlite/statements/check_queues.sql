-- purpose: messages whose queue is gone
SELECT 'message ' || m.message_id || ' stands in queue ' || m.queue_id || ', which does not exist' FROM messages m
WHERE NOT EXISTS (SELECT 1 FROM queues q WHERE q.id = m.queue_id) LIMIT 20
