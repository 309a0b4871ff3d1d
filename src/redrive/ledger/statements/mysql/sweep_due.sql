-- purpose: the batch that a sweeper looks at next, locked
-- fenced by: SKIP LOCKED: one that is being completed is passed over
-- index: redrive_batches_sweep
SELECT batch_key, state, alarm_at_ms <= CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED), window_name, window_start_us, window_end_us
FROM redrive_batches
WHERE sweep_at_ms <= CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)
ORDER BY sweep_at_ms
LIMIT 1
FOR UPDATE SKIP LOCKED;
