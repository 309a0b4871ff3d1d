-- purpose: the number by which an unknown commit can be asked about
SELECT pg_current_xact_id_if_assigned()::text
