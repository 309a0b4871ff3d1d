-- purpose: one failed delivery
INSERT INTO attempts (message_id, delivery, attempt, consumer_id, leased_ms, ended_ms, ended, error, fingerprint)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (message_id, delivery) DO NOTHING
