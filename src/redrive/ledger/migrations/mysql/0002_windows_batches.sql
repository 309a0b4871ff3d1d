-- Windows (the time range that a run covers) and batches (a set of jobs with one follow-up).

-- Which batch a job is a member of; null for most. MySQL ends a transaction at each change of a table, so that a second
-- try finds what the first one had done.
SET @redrive_change = IF(
    EXISTS (
        SELECT 1 FROM information_schema.columns
        WHERE table_schema = DATABASE() AND table_name = 'redrive_jobs' AND column_name = 'batch'
    ),
    'DO 0',
    'ALTER TABLE redrive_jobs ADD COLUMN batch VARBINARY(200), ADD INDEX redrive_jobs_batch (batch, job_key)'
);
PREPARE redrive_change FROM @redrive_change;
EXECUTE redrive_change;
DEALLOCATE PREPARE redrive_change;

-- state: 0 open, 1 complete, 2 cancelled (redrive.ledger.states). open_members: members that are not completed; the
-- receipt that takes it to 0 plans the follow-up. It is derived: a sweeper finds the same from the members' rows.
-- members_sum: the sum of the hashes of the keys that the batch was made with, whatever their order.
-- sweep_at_ms: when a sweeper looks at it (the database's clock), null: never again; alarm_at_ms: when the job for a
-- missed deadline is due.
CREATE TABLE IF NOT EXISTS redrive_batches (
    batch_key       VARBINARY(200) NOT NULL PRIMARY KEY,
    state           SMALLINT NOT NULL CHECK (state BETWEEN 0 AND 2),
    members         BIGINT NOT NULL DEFAULT 0,
    open_members    BIGINT NOT NULL DEFAULT 0,
    members_sum     VARCHAR(200) NOT NULL,
    queue           VARCHAR(200) NOT NULL,
    producer        VARCHAR(200),
    window_name     VARBINARY(200),
    window_start_us BIGINT,
    window_end_us   BIGINT,
    deadline_at_ms  BIGINT,
    alarm_at_ms     BIGINT,
    sweep_at_ms     BIGINT,
    created_at_ms   BIGINT NOT NULL,
    completed_at_ms BIGINT,
    updated_at_ms   BIGINT NOT NULL,
    INDEX redrive_batches_sweep (sweep_at_ms)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The jobs that a batch publishes by itself, kept until they are due. kind: 0 when all members are completed, 1 when the
-- deadline is missed.
CREATE TABLE IF NOT EXISTS redrive_follow_ups (
    batch_key VARBINARY(200) NOT NULL,
    kind      SMALLINT NOT NULL CHECK (kind BETWEEN 0 AND 1),
    job_key   VARBINARY(200) NOT NULL,
    queue     VARCHAR(200) NOT NULL,
    payload   LONGTEXT NOT NULL,
    options   LONGTEXT NOT NULL,
    PRIMARY KEY (batch_key, kind)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One row a window's name. Times with _us are microseconds since the epoch. mark_us: the end of what is completed, or
-- the first start. until_us: the cut of the open window, null when none is open. holder: the run that has it, until
-- held_until_ms (the database's clock); batch: the batch that completes it, which holds it without end.
CREATE TABLE IF NOT EXISTS redrive_windows (
    window_name     VARBINARY(200) NOT NULL PRIMARY KEY,
    mark_us         BIGINT NOT NULL,
    until_us        BIGINT,
    holder          VARCHAR(200),
    held_until_ms   BIGINT,
    batch           VARBINARY(200),
    opened_at_ms    BIGINT,
    completed_at_ms BIGINT,
    updated_at_ms   BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Every completed window, append-only.
CREATE TABLE IF NOT EXISTS redrive_windows_done (
    window_name     VARBINARY(200) NOT NULL,
    start_us        BIGINT NOT NULL,
    end_us          BIGINT NOT NULL CHECK (end_us > start_us),
    batch           VARBINARY(200),
    opened_at_ms    BIGINT,
    completed_at_ms BIGINT NOT NULL,
    PRIMARY KEY (window_name, start_us)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
