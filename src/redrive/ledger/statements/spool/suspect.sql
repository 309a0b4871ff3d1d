-- purpose: note a job that is to be looked at again, with the messages that were held for it
-- index: suspects primary key
INSERT INTO suspects (job_key, final, message_ids) VALUES (:job_key, :final, :message_ids) ON CONFLICT (job_key) DO NOTHING;
