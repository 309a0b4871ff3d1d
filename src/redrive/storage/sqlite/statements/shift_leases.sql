-- purpose: take an outage out of every lease
UPDATE messages SET lease_until_ms = lease_until_ms + :gap, leased_ms = leased_ms + :gap WHERE slot = 1
