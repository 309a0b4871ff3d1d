-- purpose: the first layout: queues, messages, groups, dead letters, attempts, bookkeeping
CREATE TABLE clock (one INTEGER PRIMARY KEY CHECK (one = 1), tick_ms INTEGER NOT NULL) STRICT;

CREATE TABLE queues (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    policy TEXT NOT NULL,
    dead_letter_queue TEXT,
    implicit INTEGER NOT NULL,
    holds_dead INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    tokens REAL NOT NULL,
    tokens_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL UNIQUE,
    queue_id INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    releases INTEGER NOT NULL DEFAULT 0,
    delivery INTEGER NOT NULL DEFAULT 0,
    handle TEXT,
    leased_ms INTEGER NOT NULL DEFAULT 0,
    lease_until_ms INTEGER NOT NULL DEFAULT 0,
    ended INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0,
    group_id INTEGER,
    position INTEGER NOT NULL DEFAULT 0,
    job_key TEXT,
    enqueued_ms INTEGER NOT NULL,
    consumer_id TEXT,
    first_failed_ms INTEGER NOT NULL DEFAULT 0,
    redriven INTEGER NOT NULL DEFAULT 0,
    headers BLOB,
    body_hash BLOB NOT NULL
) STRICT;
CREATE INDEX ready ON messages (queue_id, priority, due_ms, id) WHERE slot = 0;
CREATE INDEX leased ON messages (queue_id, lease_until_ms) WHERE slot = 1;
CREATE INDEX in_group ON messages (group_id, position) WHERE slot = 2;
CREATE INDEX aging ON messages (expires_ms) WHERE slot <> 1;
CREATE INDEX held ON messages (queue_id) WHERE slot = 3;

CREATE TABLE bodies (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

CREATE TABLE groups (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    live INTEGER NOT NULL,
    next_position INTEGER NOT NULL,
    head_due_ms INTEGER,
    busy INTEGER,
    blocked INTEGER NOT NULL,
    UNIQUE (queue_id, key)
) STRICT;
CREATE INDEX due_groups ON groups (queue_id, head_due_ms, id) WHERE head_due_ms IS NOT NULL;
CREATE INDEX idle_groups ON groups (id) WHERE live = 0 AND blocked = 0;
CREATE INDEX blocked_groups ON groups (queue_id, id) WHERE blocked > 0;

CREATE TABLE dead_letters (
    message_id TEXT NOT NULL,
    redrive_count INTEGER NOT NULL,
    delivery INTEGER NOT NULL,
    dlq_id INTEGER NOT NULL,
    origin TEXT,
    source_group TEXT,
    source_position INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    job_key TEXT NOT NULL,
    reason TEXT NOT NULL,
    error_type TEXT,
    error BLOB,
    fingerprint TEXT,
    attempts INTEGER NOT NULL,
    first_failed_ms INTEGER NOT NULL,
    dead_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    closed_ms INTEGER,
    closed_by TEXT,
    PRIMARY KEY (message_id, redrive_count)
) STRICT, WITHOUT ROWID;
CREATE INDEX open_by_origin ON dead_letters (origin, dead_ms, message_id) WHERE closed_ms IS NULL;
CREATE INDEX open_by_queue ON dead_letters (dlq_id, dead_ms, message_id) WHERE closed_ms IS NULL;
CREATE INDEX open_by_cause ON dead_letters (origin, fingerprint, dead_ms) WHERE closed_ms IS NULL;
CREATE INDEX closed ON dead_letters (closed_ms) WHERE closed_ms IS NOT NULL;

CREATE TABLE attempts (
    message_id TEXT NOT NULL,
    delivery INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    consumer_id TEXT,
    leased_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL,
    ended TEXT NOT NULL,
    error BLOB,
    fingerprint TEXT,
    PRIMARY KEY (message_id, delivery)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempts_by_end ON attempts (ended_ms);

CREATE TABLE tombstones (
    message_id TEXT PRIMARY KEY,
    queue TEXT NOT NULL,
    job_key TEXT NOT NULL,
    cause TEXT NOT NULL,
    reason TEXT,
    fingerprint TEXT,
    enqueued_ms INTEGER NOT NULL,
    removed_ms INTEGER NOT NULL,
    body_hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    reason TEXT,
    selection_hash TEXT,
    outcome TEXT NOT NULL,
    detail BLOB NOT NULL
) STRICT;

CREATE TABLE idempotency (
    slot INTEGER NOT NULL,
    key_hash BLOB NOT NULL,
    request_hash BLOB NOT NULL,
    answer BLOB NOT NULL,
    PRIMARY KEY (slot, key_hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE dedup (
    queue_id INTEGER NOT NULL,
    hash BLOB NOT NULL,
    message_id TEXT NOT NULL,
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (queue_id, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX dedup_until ON dedup (until_ms);

CREATE TABLE queue_stats (
    queue_id INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    node TEXT NOT NULL,
    counters BLOB NOT NULL,
    PRIMARY KEY (queue_id, slot, node)
) STRICT, WITHOUT ROWID;
CREATE INDEX stats_by_slot ON queue_stats (slot);

CREATE TABLE api_keys (key_id TEXT PRIMARY KEY, name TEXT NOT NULL, created_ms INTEGER NOT NULL, detail TEXT NOT NULL) STRICT;
