-- purpose: take the receipt of a job: the first statement of an effect, in its transaction
-- transition: planned, accepted, isolated or unknown -> completed
-- fenced by: the job key; the first committed completion wins and is final
-- index: redrive_jobs primary key
-- answers one row (state and batch, null for a duplicate), and puts the caller's lock_timeout back on the way
WITH receipt AS (
    INSERT INTO redrive_jobs (
        job_key, queue, state, generation, message_id, delivery, receipt, accepted_at_ms, completed_at_ms, updated_at_ms
    )
    VALUES (:job_key, :queue, 2, :generation, :message_id, :delivery, :receipt, :now_ms, :now_ms, :now_ms)
    ON CONFLICT (job_key) DO UPDATE SET
        state = 2,
        generation = greatest(redrive_jobs.generation, excluded.generation),
        message_id = coalesce(excluded.message_id, redrive_jobs.message_id),
        delivery = coalesce(nullif(excluded.delivery, 0), redrive_jobs.delivery),
        receipt = excluded.receipt,
        relay_after_ms = NULL,
        claim = NULL,
        completed_at_ms = excluded.completed_at_ms,
        updated_at_ms = excluded.updated_at_ms
    WHERE redrive_jobs.state NOT IN (2, 4)
    RETURNING redrive_jobs.state, redrive_jobs.batch
)
SELECT (SELECT state FROM receipt), (SELECT batch FROM receipt),
       set_config('lock_timeout', current_setting('redrive.lock_timeout'), true);
