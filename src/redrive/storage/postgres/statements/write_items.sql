-- purpose: what became of members
-- index: plan_items_pkey
UPDATE plan_items i SET outcome = w.outcome, sent_ms = w.sent_ms, finished_ms = w.finished_ms, failures = w.failures,
    failed_ms = w.failed_ms, returned = w.returned, detail = w.detail
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::int[], $7::bigint[], $8::boolean[],
    $9::text[]) AS w (plan, n, outcome, sent_ms, finished_ms, failures, failed_ms, returned, detail)
WHERE i.plan = w.plan AND i.n = w.n
