-- purpose: all that the queue holds, in the order of the keys' bytes; what was listed last stands last
SELECT job_key, message_id, queue, state FROM held ORDER BY job_key, rowid;
