-- purpose: make a batch durable
COMMIT
