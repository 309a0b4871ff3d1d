-- purpose: count the members that were added, as long as the batch is open
-- lock order: the jobs, then their batch
-- index: redrive_batches primary key
UPDATE redrive_batches SET
    members = members + :added, open_members = open_members + :opened, members_sum = coalesce(:members_sum, members_sum),
    updated_at_ms = :now_ms
WHERE batch_key = :batch AND state = 0;
