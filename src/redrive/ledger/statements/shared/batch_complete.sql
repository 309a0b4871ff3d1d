-- purpose: all members are completed; whoever touches the row plans the follow-up, and nobody after it
-- transition: open -> complete
-- index: redrive_batches primary key
UPDATE redrive_batches SET
    state = 1, open_members = 0, sweep_at_ms = NULL, alarm_at_ms = NULL, completed_at_ms = :now_ms, updated_at_ms = :now_ms
WHERE batch_key = :batch AND state = 0;
