-- purpose: write a group row
UPDATE groups SET live = ?, next_position = ?, head_due_ms = ?, busy = ?, blocked = ? WHERE id = ?
