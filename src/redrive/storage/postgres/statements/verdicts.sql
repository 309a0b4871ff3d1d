-- purpose: what a plan's members show: in flight, completed and failed since, rejected with what they had died of
-- index: in_flight
SELECT (SELECT count(*) FROM plan_items WHERE plan = $1::bigint AND outcome = 'sent'),
    (SELECT count(*) FROM (SELECT 1 FROM plan_items
        WHERE plan = $1::bigint AND outcome = 'completed' AND finished_ms >= $2::bigint LIMIT $3::bigint) AS done),
    (SELECT count(*) FROM (SELECT 1 FROM plan_items
        WHERE plan = $1::bigint AND failed_ms IS NOT NULL AND failed_ms >= $2::bigint LIMIT $3::bigint) AS failed)
