-- purpose: where the audit log's chain ends
SELECT number, hash, first, unchained FROM audit_head WHERE one = 1
