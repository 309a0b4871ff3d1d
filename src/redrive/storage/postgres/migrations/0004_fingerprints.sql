-- purpose: what becomes of a failure by its fingerprint; each queue knows how many such policies it has
ALTER TABLE queues ADD COLUMN policy_count integer NOT NULL DEFAULT 0;

CREATE TABLE fingerprint_policies (
    queue_id bigint NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    policy text NOT NULL,
    reason text,
    actor text NOT NULL,
    set_ms bigint NOT NULL,
    PRIMARY KEY (queue_id, fingerprint)
);
