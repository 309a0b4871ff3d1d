-- purpose: lock waits of the ledger end after 5 s; the caller's own setting is kept for the receipt to put back
SELECT set_config('redrive.lock_timeout', current_setting('lock_timeout'), true), set_config('lock_timeout', '5s', true);
