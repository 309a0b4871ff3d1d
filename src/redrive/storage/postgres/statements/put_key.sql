-- purpose: insert or replace an API key
INSERT INTO api_keys (key_id, name, created_ms, detail) VALUES ($1::text, $2::text, $3::bigint, $4::text)
ON CONFLICT (key_id) DO UPDATE SET name = excluded.name, detail = excluded.detail
