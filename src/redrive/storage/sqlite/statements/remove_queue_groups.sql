-- purpose: groups of a deleted queue
DELETE FROM groups WHERE queue_id = ?
