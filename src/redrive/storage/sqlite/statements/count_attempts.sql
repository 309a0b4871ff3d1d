-- purpose: live messages by attempt
SELECT attempt, count(*) FROM messages WHERE queue_id = ? AND dead = 0 GROUP BY attempt
