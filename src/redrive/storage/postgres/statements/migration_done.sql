-- purpose: note a migration
INSERT INTO migrations (name) VALUES ($1::text)
