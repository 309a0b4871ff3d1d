-- purpose: take an outage out of every backoff that was still to come
WITH moved AS (
    UPDATE messages SET due_ms = due_ms + $1::bigint
    WHERE slot IN (0, 2) AND attempt > 0 AND due_ms > $2::bigint RETURNING 1)
SELECT count(*) FROM moved
