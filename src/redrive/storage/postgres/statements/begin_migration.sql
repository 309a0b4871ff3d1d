-- purpose: begin a migration: one node migrates at a time
BEGIN;
SELECT pg_advisory_xact_lock(hashtextextended('redrive migrations', 0))::text
