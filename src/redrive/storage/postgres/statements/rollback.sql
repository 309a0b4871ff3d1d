-- purpose: undo a batch, or end a snapshot
ROLLBACK
