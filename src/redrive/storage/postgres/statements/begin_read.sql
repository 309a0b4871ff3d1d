-- purpose: begin a snapshot that changes nothing
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT redrive_now_ms()
