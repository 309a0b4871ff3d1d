-- purpose: one member of the batch is completed: the last statement of its completion, in the same transaction
-- lock order: the job (by its receipt), then its batch; the one that reaches 0 plans the follow-up
-- index: redrive_batches primary key
UPDATE redrive_batches SET open_members = open_members - 1, updated_at_ms = :now_ms
WHERE batch_key = :batch
RETURNING state, open_members, window_name, window_start_us, window_end_us;
