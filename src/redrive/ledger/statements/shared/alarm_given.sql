-- purpose: the job for the missed deadline is planned: never again
-- index: redrive_batches primary key
UPDATE redrive_batches SET alarm_at_ms = NULL, updated_at_ms = :now_ms WHERE batch_key = :batch;
