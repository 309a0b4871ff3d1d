-- purpose: evidence: the audit log is a chain and append-only; dead letters age by themselves, and leave more
ALTER TABLE audit ALTER COLUMN id DROP IDENTITY;
ALTER TABLE audit ADD COLUMN on_behalf_of text;
ALTER TABLE audit ADD COLUMN hash bytea;

CREATE TABLE audit_head (
    one integer PRIMARY KEY CHECK (one = 1),
    number bigint NOT NULL,
    hash bytea NOT NULL,
    first bigint NOT NULL,
    unchained bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO audit_head (one, number, hash, first, unchained)
SELECT 1, coalesce(max(id), 0), decode(repeat('00', 32), 'hex'), coalesce(max(id), 0) + 1, count(*) FROM audit;

CREATE FUNCTION redrive_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END $$;
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION redrive_audit_is_append_only();

ALTER TABLE tombstones ADD COLUMN first_failed_ms bigint;
ALTER TABLE tombstones ADD COLUMN dead_ms bigint;
ALTER TABLE tombstones ADD COLUMN archive text;

DROP INDEX aging;
CREATE INDEX aging ON messages (expires_ms, id) WHERE slot <> 1 AND NOT dead;
CREATE INDEX aging_dead ON messages (expires_ms, id) WHERE slot <> 1 AND dead;
CREATE INDEX open_by_end ON dead_letters (expires_ms) WHERE closed_ms IS NULL;
