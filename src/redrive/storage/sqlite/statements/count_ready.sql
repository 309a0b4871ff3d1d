-- purpose: due and delayed messages of a plain queue, and the oldest due
-- index: ready
SELECT count(*) FILTER (WHERE due_ms <= :now), count(*) FILTER (WHERE due_ms > :now), min(due_ms) FILTER (WHERE due_ms <= :now)
FROM messages WHERE queue_id = :queue AND slot = 0
