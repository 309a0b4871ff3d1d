-- purpose: no open record of this source holds its group any longer
-- index: open_by_cause
UPDATE dead_letters d SET blocks = false WHERE d.origin = $1::text AND d.closed_ms IS NULL AND d.blocks
