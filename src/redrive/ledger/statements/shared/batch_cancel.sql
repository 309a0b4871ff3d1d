-- purpose: a batch whose follow-up must never be published
-- transition: open -> cancelled
-- index: redrive_batches primary key
UPDATE redrive_batches SET state = 2, alarm_at_ms = NULL, sweep_at_ms = 0, updated_at_ms = :now_ms
WHERE batch_key = :batch AND state = 0;
