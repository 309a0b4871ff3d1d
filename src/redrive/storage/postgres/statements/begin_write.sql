-- purpose: begin a batch: the engine's time and the last liveness tick come with it
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT redrive_now_ms(), (SELECT tick_ms FROM clock)
