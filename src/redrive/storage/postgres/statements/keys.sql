-- purpose: every API key
SELECT detail FROM api_keys ORDER BY created_ms, key_id
