-- purpose: what receipt and change are both undone to
SAVEPOINT redrive_once;
