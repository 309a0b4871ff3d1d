-- purpose: dead letters whose retention ends until then, counted by source; the first so many
-- index: open_by_end
SELECT coalesce(origin, q.name) AS source, count(*), min(expires_ms)
FROM (SELECT origin, dlq_id, expires_ms FROM dead_letters WHERE closed_ms IS NULL AND expires_ms <= ?
    ORDER BY expires_ms LIMIT ?)
JOIN queues q ON q.id = dlq_id GROUP BY source ORDER BY source
