-- purpose: due and delayed messages of a plain queue, and the oldest due
SELECT count(*) FILTER (WHERE due_ms <= $2::bigint), count(*) FILTER (WHERE due_ms > $2), min(due_ms) FILTER (WHERE due_ms <= $2)
FROM messages WHERE queue_id = $1::bigint AND slot = 0
