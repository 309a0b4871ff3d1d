-- purpose: close a record, or note what became of it
UPDATE dead_letters SET closed_ms = ?, closed_by = ?, blocks = ?, reason = ? WHERE message_id = ? AND redrive_count = ?
