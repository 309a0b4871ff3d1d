-- purpose: a job's effect, in the transaction of its receipt
INSERT INTO {effects} (job_key, message_id, amount) VALUES (:job_key, :message_id, :amount);
