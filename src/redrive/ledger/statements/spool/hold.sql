-- purpose: note a message that the queue holds
INSERT INTO held (job_key, message_id, queue, state) VALUES (:job_key, :message_id, :queue, :state);
