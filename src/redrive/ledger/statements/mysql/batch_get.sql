-- purpose: one batch, and whether its deadline is over (the database's clock)
-- index: redrive_batches primary key
SELECT batch_key, state, members, open_members, members_sum, queue, window_name, window_start_us, window_end_us,
       deadline_at_ms, deadline_at_ms <= CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED), created_at_ms, completed_at_ms, updated_at_ms
FROM redrive_batches WHERE batch_key = :batch;
