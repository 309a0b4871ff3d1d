-- purpose: take an outage out of every lease
WITH moved AS (
    UPDATE messages SET lease_until_ms = lease_until_ms + $1::bigint, leased_ms = leased_ms + $1 WHERE slot = 1 RETURNING 1)
SELECT count(*) FROM moved
