-- purpose: redrive plans and their members
CREATE TABLE plans (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    plan_id uuid NOT NULL UNIQUE,
    queue text COLLATE "C" NOT NULL,
    state text NOT NULL,
    finished_ms bigint,
    made_with bytea NOT NULL,
    progress bytea NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX open_plans ON plans (number) WHERE state IN ('freezing', 'running');
CREATE INDEX ended_plans ON plans (finished_ms) WHERE finished_ms IS NOT NULL;

CREATE TABLE plan_items (
    plan bigint NOT NULL,
    n bigint NOT NULL,
    message_id uuid NOT NULL,
    redrive_count integer NOT NULL,
    job_key text COLLATE "C" NOT NULL,
    died_of text,
    outcome text NOT NULL,
    sent_ms bigint,
    finished_ms bigint,
    failures integer NOT NULL,
    failed_ms bigint,
    returned boolean NOT NULL,
    detail text,
    PRIMARY KEY (plan, n)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX sent_once ON plan_items (message_id) WHERE outcome = 'sent';
CREATE INDEX in_flight ON plan_items (plan) WHERE outcome = 'sent';
CREATE INDEX pending_items ON plan_items (plan, n) WHERE outcome = 'pending';
CREATE INDEX items_by_outcome ON plan_items (plan, outcome, n);
CREATE INDEX items_by_message ON plan_items (message_id, plan);
CREATE INDEX items_by_member ON plan_items (plan, message_id);
CREATE INDEX items_done ON plan_items (plan, finished_ms) WHERE outcome = 'completed';
CREATE INDEX items_failed ON plan_items (plan, failed_ms) WHERE failed_ms IS NOT NULL;
CREATE INDEX items_returned ON plan_items (plan, n) WHERE returned;
