-- purpose: the dead letters and tombstones of a job
CREATE INDEX dead_by_job ON dead_letters (job_key, message_id);
CREATE INDEX tombstones_by_job ON tombstones (job_key, message_id);
