-- purpose: the engine's time and the last liveness tick
SELECT redrive_now_ms(), (SELECT tick_ms FROM clock)
