-- The ledger's tables, in the application's own database. One narrow row a job key: outbox, receipt and audit in one.
-- state: 0 planned, 1 accepted, 2 completed, 3 isolated, 4 cancelled (redrive.ledger.states).
-- Keys are binary: no collation may merge two jobs.
-- relay_after_ms: not null while there is something to publish; no relay takes it before that time (its claim's end).
CREATE TABLE IF NOT EXISTS redrive_jobs (
    job_key         VARBINARY(200) NOT NULL PRIMARY KEY,
    queue           VARCHAR(200) NOT NULL,
    state           SMALLINT NOT NULL CHECK (state BETWEEN 0 AND 4),
    generation      BIGINT NOT NULL DEFAULT 0,
    message_id      VARCHAR(200),
    delivery        BIGINT NOT NULL DEFAULT 0,
    producer        VARCHAR(200),
    receipt         VARCHAR(200),
    result          LONGTEXT,
    relay_after_ms  BIGINT,
    place           BIGINT NOT NULL DEFAULT 0,
    claim           VARCHAR(200),
    planned_at_ms   BIGINT,
    accepted_at_ms  BIGINT,
    completed_at_ms BIGINT,
    updated_at_ms   BIGINT NOT NULL,
    INDEX redrive_jobs_relay (relay_after_ms, planned_at_ms, place)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What the producer planned, insert-only; `options` is a JSON object (headers, delay_seconds, priority, group, …).
CREATE TABLE IF NOT EXISTS redrive_payloads (
    job_key VARBINARY(200) NOT NULL PRIMARY KEY,
    payload LONGTEXT NOT NULL,
    options LONGTEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- How each delivery ended, append-only: a delivery's first own record stands. `derived` rows (lost, unrecorded) are
-- what a later delivery knew of it; its own record may still come, from a worker that was only slow.
CREATE TABLE IF NOT EXISTS redrive_attempts (
    job_key       VARBINARY(200) NOT NULL,
    message_id    VARCHAR(200) NOT NULL,
    delivery      BIGINT NOT NULL,
    derived       SMALLINT NOT NULL DEFAULT 0,
    generation    BIGINT NOT NULL,
    attempt       BIGINT,
    queue         VARCHAR(200) NOT NULL,
    worker        VARCHAR(200),
    outcome       VARCHAR(200) NOT NULL,
    started_at_ms BIGINT,
    ended_at_ms   BIGINT NOT NULL,
    error_type    VARCHAR(200),
    error_message LONGTEXT,
    error_stack   LONGTEXT,
    fingerprint   VARCHAR(200),
    PRIMARY KEY (job_key, message_id, delivery, derived)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
