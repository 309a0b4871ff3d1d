-- purpose: plan jobs in the producer's transaction; a key that is known is left as it is. Touches the rows planned now
-- transition: unknown -> planned
-- index: redrive_jobs primary key, redrive_payloads primary key
WITH given AS MATERIALIZED (
    SELECT key, payload, options, place
    FROM json_to_recordset(CAST(:jobs AS json)) AS job (key text, payload text, options text, place bigint)
), planned AS (
    INSERT INTO redrive_jobs (job_key, queue, state, producer, relay_after_ms, place, planned_at_ms, updated_at_ms, batch)
    SELECT key, CAST(:queue AS text), 0, CAST(:producer AS text), 0, place, CAST(:now_ms AS bigint), CAST(:now_ms AS bigint),
           CAST(:batch AS text)
    FROM given
    ON CONFLICT (job_key) DO NOTHING
    RETURNING job_key
)
INSERT INTO redrive_payloads (job_key, payload, options)
SELECT given.key, given.payload, given.options FROM given JOIN planned ON planned.job_key = given.key
ON CONFLICT (job_key) DO NOTHING;
