-- purpose: a new batch, without members yet; touches nothing when there is one of that key
-- IGNORE: what an upsert touches depends on the connection's flags; the values are checked before
-- index: redrive_batches primary key
INSERT IGNORE INTO redrive_batches (
    batch_key, state, members_sum, queue, producer, window_name, window_start_us, window_end_us, deadline_at_ms, alarm_at_ms,
    sweep_at_ms, created_at_ms, updated_at_ms
)
VALUES (
    :batch, 0, :members_sum, :queue, :producer, :window, :start_us, :end_us, :deadline_ms, :alarm_ms,
    0, :now_ms, :now_ms
);
