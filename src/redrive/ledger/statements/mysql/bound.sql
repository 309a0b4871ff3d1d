-- purpose: lock waits of the ledger end after 5 s; the caller's own setting is kept
SET @redrive_wait = @@SESSION.innodb_lock_wait_timeout, SESSION innodb_lock_wait_timeout = 5;
