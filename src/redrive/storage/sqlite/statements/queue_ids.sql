-- purpose: every queue, for sweeps that go queue by queue
SELECT id FROM queues ORDER BY id
