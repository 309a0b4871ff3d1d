-- purpose: how far a window has come, and whether a live run has it (the database's clock)
-- index: redrive_windows primary key
SELECT mark_us, until_us, holder, held_until_ms > CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), batch, opened_at_ms
FROM redrive_windows WHERE window_name = :window;
