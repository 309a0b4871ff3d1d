-- purpose: when the service was last known to be alive
SELECT tick_ms FROM clock WHERE one = 1
