-- purpose: the last step of a delete
DELETE FROM queues WHERE id = ?
