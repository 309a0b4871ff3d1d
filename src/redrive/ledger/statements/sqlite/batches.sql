-- purpose: a page of the batches in one of two states (the same twice for one), in the order of their keys' bytes
-- index: redrive_batches primary key
SELECT batch_key, state, members, open_members, members_sum, queue, window_name, window_start_us, window_end_us,
       deadline_at_ms, deadline_at_ms <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), created_at_ms, completed_at_ms, updated_at_ms
FROM redrive_batches WHERE batch_key > :after AND state BETWEEN :first_state AND :last_state
ORDER BY batch_key
LIMIT :limit;
