-- purpose: the batch that a sweeper looks at next, locked
-- fenced by: the write lock of BEGIN IMMEDIATE
-- index: redrive_batches_sweep
SELECT batch_key, state, alarm_at_ms <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), window_name, window_start_us, window_end_us
FROM redrive_batches
WHERE sweep_at_ms <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
ORDER BY sweep_at_ms
LIMIT 1;
