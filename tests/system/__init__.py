"""Real processes: servers, workers and client programs, killed, stopped and restarted."""
