-- purpose: what the sweeper counted, and when it looks again (the database's clock); null: never
-- index: redrive_batches primary key
UPDATE redrive_batches SET members = :members, open_members = :open_members, sweep_at_ms = CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) + :pause_ms
WHERE batch_key = :batch;
