-- purpose: lock waits are the caller's own again
SELECT set_config('lock_timeout', current_setting('redrive.lock_timeout'), true);
