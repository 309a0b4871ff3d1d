-- purpose: empty groups that nothing holds
-- index: idle_groups
DELETE FROM groups WHERE id IN (SELECT id FROM groups WHERE live = 0 AND blocked = 0 LIMIT ?)
