-- purpose: what the sweeper counted, and when it looks again (the database's clock); null: never
-- index: redrive_batches primary key
UPDATE redrive_batches SET members = :members, open_members = :open_members, sweep_at_ms = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + :pause_ms
WHERE batch_key = :batch;
