-- purpose: the body goes with its message
DELETE FROM bodies WHERE id = ?
