-- purpose: the body and the checksum of an edited message
-- fenced by: delivery
UPDATE messages SET body = $3::bytea, body_hash = $4::bytea WHERE id = $1::bigint AND delivery = $2::bigint
