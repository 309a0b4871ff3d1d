-- purpose: the jobs of a queue by state, and how many of them wait for a relay; reads the whole table
SELECT state, count(*), count(relay_after_ms) FROM redrive_jobs WHERE queue = :queue GROUP BY state;
