-- purpose: note a migration
INSERT INTO redrive_ledger_versions (version, applied_at_ms) VALUES (:version, :now_ms);
