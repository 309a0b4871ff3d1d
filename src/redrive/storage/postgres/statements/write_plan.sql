-- purpose: what changes of a plan
UPDATE plans SET state = $2::text, finished_ms = $3::bigint, progress = $4::bytea WHERE number = $1::bigint
