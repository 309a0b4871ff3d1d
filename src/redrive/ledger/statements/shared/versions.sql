-- purpose: which migrations this database has had
SELECT version FROM redrive_ledger_versions ORDER BY version;
