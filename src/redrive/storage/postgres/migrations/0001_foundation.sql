-- purpose: the first layout: queues, messages, groups, dead letters, attempts, bookkeeping
CREATE FUNCTION redrive_now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(
        nullif(current_setting('redrive.clock_ms', true), '')::bigint,
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$$;

CREATE TABLE clock (one integer PRIMARY KEY CHECK (one = 1), tick_ms bigint);
INSERT INTO clock (one, tick_ms) VALUES (1, NULL);

-- Unlogged: recovery after a crash empties it, and with it goes the name of the history before the crash.
CREATE UNLOGGED TABLE incarnation (one integer PRIMARY KEY CHECK (one = 1), token uuid NOT NULL);

CREATE TABLE queues (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    kind text NOT NULL,
    state text NOT NULL,
    policy text NOT NULL,
    dead_letter_queue text COLLATE "C",
    implicit boolean NOT NULL,
    holds_dead boolean NOT NULL,
    created_ms bigint NOT NULL,
    tokens float8 NOT NULL,
    tokens_at_ms bigint NOT NULL,
    limited boolean NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE messages (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id uuid NOT NULL UNIQUE,
    queue_id bigint NOT NULL,
    due_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    enqueued_ms bigint NOT NULL,
    leased_ms bigint NOT NULL DEFAULT 0,
    lease_until_ms bigint NOT NULL DEFAULT 0,
    first_failed_ms bigint NOT NULL DEFAULT 0,
    position bigint NOT NULL DEFAULT 0,
    delivery bigint NOT NULL DEFAULT 0,
    group_id bigint,
    attempt integer NOT NULL DEFAULT 0,
    releases integer NOT NULL DEFAULT 0,
    redriven integer NOT NULL DEFAULT 0,
    slot smallint NOT NULL,
    priority smallint NOT NULL,
    ended smallint NOT NULL DEFAULT 0,
    cancelled boolean NOT NULL DEFAULT false,
    dead boolean NOT NULL DEFAULT false,
    handle text COLLATE "C",
    consumer_id text COLLATE "C",
    job_key text COLLATE "C",
    body_hash bytea NOT NULL,
    headers bytea,
    body bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE messages ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX ready ON messages (queue_id, priority, due_ms, id) WHERE slot = 0;
CREATE INDEX leased ON messages (queue_id, lease_until_ms, id) WHERE slot = 1;
CREATE INDEX in_group ON messages (group_id, position, id) WHERE slot = 2;
CREATE INDEX aging ON messages (expires_ms, id) WHERE slot <> 1;
CREATE INDEX held ON messages (queue_id) WHERE slot = 3;

CREATE TABLE groups (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue_id bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    live bigint NOT NULL DEFAULT 0,
    next_position bigint NOT NULL DEFAULT 1,
    head_due_ms bigint,
    busy bigint,
    blocked bigint NOT NULL DEFAULT 0,
    UNIQUE (queue_id, key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX due_groups ON groups (queue_id, head_due_ms, id) WHERE head_due_ms IS NOT NULL;
CREATE INDEX idle_groups ON groups (id) WHERE live = 0 AND blocked = 0;
CREATE INDEX blocked_groups ON groups (queue_id, id) WHERE blocked > 0;

CREATE TABLE dead_letters (
    message_id uuid NOT NULL,
    redrive_count integer NOT NULL,
    delivery bigint NOT NULL,
    dlq_id bigint NOT NULL,
    origin text COLLATE "C",
    source_group text COLLATE "C",
    source_position bigint NOT NULL,
    blocks boolean NOT NULL,
    job_key text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    error_type text COLLATE "C",
    error bytea,
    fingerprint text COLLATE "C",
    attempts bigint NOT NULL,
    first_failed_ms bigint NOT NULL,
    dead_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    closed_ms bigint,
    closed_by text,
    PRIMARY KEY (message_id, redrive_count)
);
CREATE INDEX open_by_origin ON dead_letters (origin, dead_ms, message_id) WHERE closed_ms IS NULL;
CREATE INDEX open_by_queue ON dead_letters (dlq_id, dead_ms, message_id) WHERE closed_ms IS NULL;
CREATE INDEX open_by_cause ON dead_letters (origin, fingerprint, dead_ms) WHERE closed_ms IS NULL;
CREATE INDEX closed ON dead_letters (closed_ms) WHERE closed_ms IS NOT NULL;

CREATE TABLE attempts (
    message_id uuid NOT NULL,
    delivery bigint NOT NULL,
    attempt bigint NOT NULL,
    consumer_id text,
    leased_ms bigint NOT NULL,
    ended_ms bigint NOT NULL,
    ended text NOT NULL,
    error bytea,
    fingerprint text,
    PRIMARY KEY (message_id, delivery)
);
CREATE INDEX attempts_by_end ON attempts (ended_ms);

CREATE TABLE tombstones (
    message_id uuid PRIMARY KEY,
    queue text NOT NULL,
    job_key text NOT NULL,
    cause text NOT NULL,
    reason text,
    fingerprint text,
    enqueued_ms bigint NOT NULL,
    removed_ms bigint NOT NULL,
    body_hash bytea NOT NULL
);

CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_ms bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    reason text,
    selection_hash text,
    outcome text NOT NULL,
    detail bytea NOT NULL
);

CREATE TABLE idempotency (
    slot bigint NOT NULL,
    key_hash bytea NOT NULL,
    request_hash bytea NOT NULL,
    answer bytea NOT NULL,
    PRIMARY KEY (slot, key_hash)
);

CREATE TABLE dedup (
    queue_id bigint NOT NULL,
    hash bytea NOT NULL,
    message_id uuid NOT NULL,
    until_ms bigint NOT NULL,
    PRIMARY KEY (queue_id, hash)
);
CREATE INDEX dedup_until ON dedup (until_ms);

CREATE TABLE queue_stats (
    queue_id bigint NOT NULL,
    slot bigint NOT NULL,
    node text NOT NULL,
    counters bytea NOT NULL,
    PRIMARY KEY (queue_id, slot, node)
);
CREATE INDEX stats_by_slot ON queue_stats (slot);

CREATE TABLE api_keys (key_id text PRIMARY KEY, name text NOT NULL, created_ms bigint NOT NULL, detail text NOT NULL);
