-- Windows (the time range that a run covers) and batches (a set of jobs with one follow-up).

-- Which batch a job is a member of; null for most.
ALTER TABLE redrive_jobs ADD COLUMN batch TEXT;

CREATE INDEX IF NOT EXISTS redrive_jobs_batch ON redrive_jobs (batch, job_key) WHERE batch IS NOT NULL;

-- state: 0 open, 1 complete, 2 cancelled (redrive.ledger.states). open_members: members that are not completed; the
-- receipt that takes it to 0 plans the follow-up. It is derived: a sweeper finds the same from the members' rows.
-- members_sum: the sum of the hashes of the keys that the batch was made with, whatever their order.
-- sweep_at_ms: when a sweeper looks at it (the database's clock), null: never again; alarm_at_ms: when the job for a
-- missed deadline is due.
CREATE TABLE IF NOT EXISTS redrive_batches (
    batch_key       TEXT NOT NULL PRIMARY KEY,
    state           INTEGER NOT NULL CHECK (state BETWEEN 0 AND 2),
    members         INTEGER NOT NULL DEFAULT 0,
    open_members    INTEGER NOT NULL DEFAULT 0,
    members_sum     TEXT NOT NULL,
    queue           TEXT NOT NULL,
    producer        TEXT,
    window_name     TEXT,
    window_start_us INTEGER,
    window_end_us   INTEGER,
    deadline_at_ms  INTEGER,
    alarm_at_ms     INTEGER,
    sweep_at_ms     INTEGER,
    created_at_ms   INTEGER NOT NULL,
    completed_at_ms INTEGER,
    updated_at_ms   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS redrive_batches_sweep ON redrive_batches (sweep_at_ms) WHERE sweep_at_ms IS NOT NULL;

-- The jobs that a batch publishes by itself, kept until they are due. kind: 0 when all members are completed, 1 when the
-- deadline is missed.
CREATE TABLE IF NOT EXISTS redrive_follow_ups (
    batch_key TEXT NOT NULL,
    kind      INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 1),
    job_key   TEXT NOT NULL,
    queue     TEXT NOT NULL,
    payload   TEXT NOT NULL,
    options   TEXT NOT NULL,
    PRIMARY KEY (batch_key, kind)
);

-- One row a window's name. Times with _us are microseconds since the epoch. mark_us: the end of what is completed, or
-- the first start. until_us: the cut of the open window, null when none is open. holder: the run that has it, until
-- held_until_ms (the database's clock); batch: the batch that completes it, which holds it without end.
CREATE TABLE IF NOT EXISTS redrive_windows (
    window_name     TEXT NOT NULL PRIMARY KEY,
    mark_us         INTEGER NOT NULL,
    until_us        INTEGER,
    holder          TEXT,
    held_until_ms   INTEGER,
    batch           TEXT,
    opened_at_ms    INTEGER,
    completed_at_ms INTEGER,
    updated_at_ms   INTEGER NOT NULL
) WITHOUT ROWID;

-- Every completed window, append-only.
CREATE TABLE IF NOT EXISTS redrive_windows_done (
    window_name     TEXT NOT NULL,
    start_us        INTEGER NOT NULL,
    end_us          INTEGER NOT NULL CHECK (end_us > start_us),
    batch           TEXT,
    opened_at_ms    INTEGER,
    completed_at_ms INTEGER NOT NULL,
    PRIMARY KEY (window_name, start_us)
) WITHOUT ROWID;
