-- purpose: what became of a transaction whose commit was not answered
SELECT pg_xact_status($1::text::xid8)
