-- purpose: no open record of this source holds its group any longer
-- index: open_by_origin
UPDATE dead_letters SET blocks = 0 WHERE origin = ? AND closed_ms IS NULL AND blocks = 1
