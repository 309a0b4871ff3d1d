-- purpose: when a service was last known to be alive; locked, so that one node alone takes an outage out
SELECT tick_ms FROM clock WHERE one = 1 FOR UPDATE
