-- purpose: dead letters whose retention ends until then, counted by source; the first so many
-- index: open_by_end
SELECT coalesce(d.origin, q.name) AS source, count(*), min(d.expires_ms)
FROM (SELECT origin, dlq_id, expires_ms FROM dead_letters WHERE closed_ms IS NULL AND expires_ms <= $1::bigint
    ORDER BY expires_ms LIMIT $2::bigint) d
JOIN queues q ON q.id = d.dlq_id GROUP BY source ORDER BY source
