-- purpose: give a row to a consumer
-- transition: lease
UPDATE messages SET slot = 1, attempt = attempt + 1, delivery = delivery + 1, handle = ?, leased_ms = ?,
    lease_until_ms = ?, consumer_id = ? WHERE id = ?
