-- purpose: take an outage out of every backoff that was still to come
UPDATE messages SET due_ms = due_ms + :gap WHERE slot IN (0, 2) AND attempt > 0 AND due_ms > :since
