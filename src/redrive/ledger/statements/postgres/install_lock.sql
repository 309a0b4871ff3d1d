-- purpose: one installation at a time; CREATE TABLE IF NOT EXISTS alone can collide
SELECT pg_advisory_xact_lock(8243126110);
