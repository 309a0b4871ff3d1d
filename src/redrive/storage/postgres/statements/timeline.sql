-- purpose: which history the server writes; after a failover another one
SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)
