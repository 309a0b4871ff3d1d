-- purpose: remove what ack.sql found in the same transaction (RETURNING would cost more than the look-up)
DELETE FROM messages WHERE id = ?
