-- purpose: where the audit log's chain ends; locked, so that one batch at a time appends
SELECT number, hash, first, unchained, pg_current_xact_id()::text FROM audit_head WHERE one = 1 FOR UPDATE
