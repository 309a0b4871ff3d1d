-- purpose: jobs by state, what waits for a relay, the oldest planned one; reads the whole table
SELECT state, count(*), count(relay_after_ms), min(planned_at_ms) FROM redrive_jobs GROUP BY state;
