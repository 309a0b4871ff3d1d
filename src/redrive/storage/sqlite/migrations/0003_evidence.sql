-- purpose: evidence: the audit log is a chain and append-only; dead letters age by themselves, and leave more
ALTER TABLE audit ADD COLUMN on_behalf_of TEXT;
ALTER TABLE audit ADD COLUMN hash BLOB;

CREATE TABLE audit_head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    first INTEGER NOT NULL,
    unchained INTEGER NOT NULL
) STRICT;
INSERT INTO audit_head (one, number, hash, first, unchained)
SELECT 1, coalesce(max(id), 0), zeroblob(32), coalesce(max(id), 0) + 1, count(*) FROM audit;

CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_never_shortened BEFORE DELETE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;

ALTER TABLE tombstones ADD COLUMN first_failed_ms INTEGER;
ALTER TABLE tombstones ADD COLUMN dead_ms INTEGER;
ALTER TABLE tombstones ADD COLUMN archive TEXT;

DROP INDEX aging;
CREATE INDEX aging ON messages (expires_ms) WHERE slot <> 1 AND dead = 0;
CREATE INDEX aging_dead ON messages (expires_ms) WHERE slot <> 1 AND dead = 1;
CREATE INDEX open_by_end ON dead_letters (expires_ms) WHERE closed_ms IS NULL;
