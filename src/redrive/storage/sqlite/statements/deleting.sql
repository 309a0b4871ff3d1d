-- purpose: queues that are being deleted
SELECT name FROM queues WHERE state = 'deleting' ORDER BY id LIMIT ?
