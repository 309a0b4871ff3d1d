-- purpose: which history the server writes: another one after a failover, and after every crash; null for a moment while another node names it
WITH made AS (
    INSERT INTO incarnation (one, token) VALUES (1, gen_random_uuid()) ON CONFLICT (one) DO NOTHING RETURNING token)
SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) || ' '
    || coalesce((SELECT token FROM made), (SELECT token FROM incarnation))::text
