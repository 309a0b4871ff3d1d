-- purpose: what becomes of a failure by its fingerprint; each queue knows how many such policies it has
ALTER TABLE queues ADD COLUMN policy_count INTEGER NOT NULL DEFAULT 0;

CREATE TABLE fingerprint_policies (
    queue_id INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    policy TEXT NOT NULL,
    reason TEXT,
    actor TEXT NOT NULL,
    set_ms INTEGER NOT NULL,
    PRIMARY KEY (queue_id, fingerprint)
) STRICT, WITHOUT ROWID;
