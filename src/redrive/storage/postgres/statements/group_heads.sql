-- purpose: the first message at rest of each of these groups, locked, in the order of the groups; a suspect alone, and the bodies fit
-- transition: lease
-- index: in_group
WITH due AS MATERIALIZED (
    SELECT w.n AS turn, w.key, m.ctid AS place, m.id, m.message_id, m.job_key, m.priority, m.attempt, m.delivery, m.ended, m.enqueued_ms, m.group_id, m.headers,
        m.body, m.body_hash, m.dead, m.redriven, octet_length(m.body) AS size
    FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS w (group_id, key, n)
    CROSS JOIN LATERAL (
        SELECT h.id FROM messages h WHERE h.group_id = w.group_id AND h.slot = 2 ORDER BY h.position, h.id LIMIT 1) head
    JOIN messages m ON m.id = head.id AND m.slot = 2
    ORDER BY w.n FOR UPDATE OF m SKIP LOCKED),
numbered AS (SELECT due.*, row_number() OVER (ORDER BY turn) AS n FROM due),
weighed AS (
    SELECT numbered.*, sum(size) OVER (ORDER BY n) AS total, bool_or(ended = 1) OVER (ORDER BY n) AS tainted FROM numbered)
SELECT id, message_id::text, job_key, priority, attempt + 1, delivery + 1, ended, enqueued_ms, group_id, headers, body,
    body_hash, dead, redriven, place, key
FROM weighed WHERE n = 1 OR (NOT tainted AND total <= $3::bigint) ORDER BY n
