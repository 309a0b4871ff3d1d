-- purpose: lease what may go together of the due messages: a suspect alone, and the bodies fit
-- transition: lease
-- index: ready
WITH due AS MATERIALIZED (
    SELECT d.* FROM unnest($2::int[], $6::bigint[]) AS level (priority, floor) CROSS JOIN LATERAL (
        SELECT m.ctid AS place, m.ended = 1 AS suspect, octet_length(m.body) AS size
        FROM messages m
        WHERE m.queue_id = $1::bigint AND m.slot = 0 AND m.priority = level.priority
            AND m.due_ms >= level.floor AND m.due_ms <= $3::bigint
        ORDER BY m.due_ms, m.id LIMIT $4::bigint FOR UPDATE SKIP LOCKED) d
    LIMIT $4::bigint),
numbered AS (SELECT due.*, row_number() OVER () AS n FROM due),
weighed AS MATERIALIZED (
    SELECT place, n, suspect, sum(size) OVER (ORDER BY n) AS total, bool_or(suspect) OVER (ORDER BY n) AS tainted FROM numbered),
leased AS (
    UPDATE messages m SET slot = 1, attempt = m.attempt + 1, delivery = m.delivery + 1, handle = ($7::text[])[w.n],
        leased_ms = $8::bigint, lease_until_ms = $9::bigint, consumer_id = $10::text
    FROM weighed w WHERE m.ctid = w.place AND (w.n = 1 OR NOT w.tainted AND w.total <= $5::bigint)
    RETURNING m.id, m.message_id, m.job_key, m.priority, m.attempt, m.delivery, m.ended, m.enqueued_ms, m.group_id, m.headers,
        m.body, m.body_hash, m.dead, m.redriven, m.handle, m.due_ms, w.n)
SELECT id, message_id::text, job_key, priority, attempt, delivery, ended, enqueued_ms, group_id, headers, body, body_hash,
    dead, redriven, handle, due_ms FROM leased ORDER BY n
