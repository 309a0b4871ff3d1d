-- The ledger's tables, in the application's own database. One narrow row a job key: outbox, receipt and audit in one.
-- state: 0 planned, 1 accepted, 2 completed, 3 isolated, 4 cancelled (redrive.ledger.states).
-- relay_after_ms: not null while there is something to publish; no relay takes it before that time (its claim's end).
CREATE TABLE IF NOT EXISTS redrive_jobs (
    job_key         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    queue           TEXT NOT NULL,
    state           SMALLINT NOT NULL CHECK (state BETWEEN 0 AND 4),
    generation      BIGINT NOT NULL DEFAULT 0,
    message_id      TEXT,
    delivery        BIGINT NOT NULL DEFAULT 0,
    producer        TEXT,
    receipt         TEXT,
    result          TEXT,
    relay_after_ms  BIGINT,
    place           BIGINT NOT NULL DEFAULT 0,
    claim           TEXT,
    planned_at_ms   BIGINT,
    accepted_at_ms  BIGINT,
    completed_at_ms BIGINT,
    updated_at_ms   BIGINT NOT NULL
);

CREATE INDEX IF NOT EXISTS redrive_jobs_relay ON redrive_jobs (relay_after_ms, planned_at_ms, place) WHERE relay_after_ms IS NOT NULL;

-- What the producer planned, insert-only; `options` is a JSON object (headers, delay_seconds, priority, group, …).
CREATE TABLE IF NOT EXISTS redrive_payloads (
    job_key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    payload TEXT NOT NULL,
    options TEXT NOT NULL
);

-- How each delivery ended, append-only: a delivery's first own record stands. `derived` rows (lost, unrecorded) are
-- what a later delivery knew of it; its own record may still come, from a worker that was only slow.
CREATE TABLE IF NOT EXISTS redrive_attempts (
    job_key       TEXT COLLATE "C" NOT NULL,
    message_id    TEXT NOT NULL,
    delivery      BIGINT NOT NULL,
    derived       SMALLINT NOT NULL DEFAULT 0,
    generation    BIGINT NOT NULL,
    attempt       BIGINT,
    queue         TEXT NOT NULL,
    worker        TEXT,
    outcome       TEXT NOT NULL,
    started_at_ms BIGINT,
    ended_at_ms   BIGINT NOT NULL,
    error_type    TEXT,
    error_message TEXT,
    error_stack   TEXT,
    fingerprint   TEXT,
    PRIMARY KEY (job_key, message_id, delivery, derived)
);
