-- purpose: the batch that a sweeper looks at next, locked
-- fenced by: SKIP LOCKED: one that is being completed is passed over
-- index: redrive_batches_sweep
SELECT batch_key, state, alarm_at_ms <= CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint), window_name, window_start_us, window_end_us
FROM redrive_batches
WHERE sweep_at_ms <= CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)
ORDER BY sweep_at_ms
LIMIT 1
FOR UPDATE SKIP LOCKED;
