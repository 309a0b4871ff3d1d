-- purpose: undo the whole transaction
ROLLBACK;
