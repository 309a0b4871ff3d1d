-- purpose: where the migrations are noted
CREATE TABLE IF NOT EXISTS redrive_ledger_versions (version INTEGER NOT NULL PRIMARY KEY, applied_at_ms BIGINT NOT NULL);
