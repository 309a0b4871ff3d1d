-- purpose: the group's head is leased
UPDATE groups SET head_due_ms = NULL, busy = ? WHERE id = ?
