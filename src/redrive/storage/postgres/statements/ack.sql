-- purpose: remove leased messages of plain queues; rows that another transaction holds do not come back
-- transition: ack
-- fenced by: handle
-- index: messages_message_id_key
WITH held AS MATERIALIZED (
    SELECT m.ctid AS place FROM messages m
    WHERE m.message_id = ANY ($1::uuid[]) AND m.slot + 0 = 1 AND m.group_id IS NULL AND NOT m.dead AND NOT m.cancelled
        AND m.redriven = 0
        AND ((m.message_id, m.handle) IN (SELECT * FROM unnest($1::uuid[], $2::text[]))) IS TRUE
    FOR UPDATE OF m SKIP LOCKED)
DELETE FROM messages m WHERE m.ctid = ANY (ARRAY(SELECT place FROM held))
RETURNING m.message_id::text, m.queue_id, m.leased_ms, m.attempt, pg_current_xact_id_if_assigned()::text
