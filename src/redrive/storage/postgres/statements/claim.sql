-- purpose: lock due messages, priority level by level, oldest first; a suspect alone, and the bodies fit; leased by lease.sql
-- transition: lease
-- index: ready
WITH due AS MATERIALIZED (
    SELECT d.* FROM unnest($2::int[], $6::bigint[]) AS level (priority, floor) CROSS JOIN LATERAL (
        SELECT m.id, m.message_id, m.job_key, m.priority, m.attempt, m.delivery, m.ended, m.enqueued_ms, m.group_id, m.headers,
        m.body, m.body_hash, m.dead, m.redriven, m.ctid AS place, m.due_ms, octet_length(m.body) AS size
        FROM messages m
        WHERE m.queue_id = $1::bigint AND m.slot = 0 AND m.priority = level.priority
            AND m.due_ms >= level.floor AND m.due_ms <= $3::bigint
        ORDER BY m.due_ms, m.id LIMIT $4::bigint FOR UPDATE SKIP LOCKED) d
    LIMIT $4::bigint),
numbered AS (SELECT due.*, row_number() OVER () AS n FROM due),
weighed AS (
    SELECT numbered.*, sum(size) OVER (ORDER BY n) AS total, bool_or(ended = 1) OVER (ORDER BY n) AS tainted FROM numbered)
SELECT id, message_id::text, job_key, priority, attempt + 1, delivery + 1, ended, enqueued_ms, group_id, headers, body,
    body_hash, dead, redriven, place, due_ms
FROM weighed WHERE n = 1 OR (NOT tainted AND total <= $5::bigint) ORDER BY n
