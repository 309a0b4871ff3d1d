-- purpose: how far a window has come, and whether a live run has it (the database's clock)
-- index: redrive_windows primary key
SELECT mark_us, until_us, holder, held_until_ms > CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED), batch, opened_at_ms
FROM redrive_windows WHERE window_name = :window;
