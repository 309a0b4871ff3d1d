-- purpose: redrive plans and their members
CREATE TABLE plans (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    plan_id TEXT NOT NULL UNIQUE,
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    finished_ms INTEGER,
    made_with TEXT NOT NULL,
    progress TEXT NOT NULL
) STRICT;
CREATE INDEX open_plans ON plans (number) WHERE state IN ('freezing', 'running');
CREATE INDEX ended_plans ON plans (finished_ms) WHERE finished_ms IS NOT NULL;

CREATE TABLE plan_items (
    plan INTEGER NOT NULL,
    n INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    redrive_count INTEGER NOT NULL,
    job_key TEXT NOT NULL,
    died_of TEXT,
    outcome TEXT NOT NULL,
    sent_ms INTEGER,
    finished_ms INTEGER,
    failures INTEGER NOT NULL,
    failed_ms INTEGER,
    returned INTEGER NOT NULL,
    detail TEXT,
    PRIMARY KEY (plan, n)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sent_once ON plan_items (message_id) WHERE outcome = 'sent';
CREATE INDEX in_flight ON plan_items (plan) WHERE outcome = 'sent';
CREATE INDEX pending_items ON plan_items (plan, n) WHERE outcome = 'pending';
CREATE INDEX items_by_outcome ON plan_items (plan, outcome, n);
CREATE INDEX items_by_message ON plan_items (message_id, plan);
CREATE INDEX items_by_member ON plan_items (plan, message_id);
CREATE INDEX items_done ON plan_items (plan, finished_ms) WHERE outcome = 'completed';
CREATE INDEX items_failed ON plan_items (plan, failed_ms) WHERE failed_ms IS NOT NULL;
CREATE INDEX items_returned ON plan_items (plan, n) WHERE returned = 1;
