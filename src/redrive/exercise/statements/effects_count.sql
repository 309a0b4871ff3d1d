-- purpose: how often each job had its effect
-- index: none, a whole small table
SELECT job_key, count(*) FROM {effects} GROUP BY job_key;
