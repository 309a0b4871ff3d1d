-- purpose: where the audit log's chain ends now
UPDATE audit_head SET number = $1::bigint, hash = $2::bytea WHERE one = 1
