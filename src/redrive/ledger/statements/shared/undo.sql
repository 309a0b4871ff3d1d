-- purpose: undo receipt and change, whatever the caller does next
ROLLBACK TO SAVEPOINT redrive_once;
RELEASE SAVEPOINT redrive_once;
