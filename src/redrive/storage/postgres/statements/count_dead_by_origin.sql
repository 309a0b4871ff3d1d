-- purpose: open dead letters of a source
-- index: open_by_cause
SELECT count(*), min(d.dead_ms) FROM dead_letters d WHERE d.origin = $1::text AND d.closed_ms IS NULL
