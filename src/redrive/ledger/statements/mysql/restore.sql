-- purpose: lock waits are the caller's own again
SET SESSION innodb_lock_wait_timeout = @redrive_wait;
