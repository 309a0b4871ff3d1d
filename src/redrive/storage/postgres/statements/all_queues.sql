-- purpose: every queue, each held alone; in the order of queues_leasing
SELECT id FROM queues ORDER BY limited DESC, id FOR UPDATE
