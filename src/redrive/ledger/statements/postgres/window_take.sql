-- purpose: open the window, or resume the open one, until the run's hold ends (the database's clock)
-- fenced by: the mark and the cut that were read; no live run and no batch has it
-- index: redrive_windows primary key
UPDATE redrive_windows SET
    until_us = :end_us,
    holder = :holder,
    held_until_ms = CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) + :hold_ms,
    opened_at_ms = coalesce(opened_at_ms, :now_ms),
    updated_at_ms = :now_ms
WHERE window_name = :window AND mark_us = :start_us AND (until_us IS NULL OR until_us = :end_us)
  AND batch IS NULL AND (holder IS NULL OR held_until_ms <= CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint));
