-- purpose: keep receipt and change in the surrounding transaction; fails when the change ended that
RELEASE SAVEPOINT redrive_once;
