-- purpose: members of a plan
INSERT INTO plan_items (plan, n, message_id, redrive_count, job_key, died_of, outcome, sent_ms, finished_ms, failures, failed_ms, returned, detail)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::int[], $5::text[], $6::text[], $7::text[], $8::bigint[],
    $9::bigint[], $10::int[], $11::bigint[], $12::boolean[], $13::text[])
