-- purpose: operator actions
INSERT INTO audit (at_ms, actor, action, target, reason, selection_hash, outcome, detail, id, on_behalf_of, hash)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bytea[],
    $9::bigint[], $10::text[], $11::bytea[])
