-- purpose: open dead letters of a source
-- index: open_by_origin
SELECT count(*), min(dead_ms) FROM dead_letters WHERE origin = ? AND closed_ms IS NULL
