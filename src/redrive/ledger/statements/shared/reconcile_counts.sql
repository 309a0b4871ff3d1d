-- purpose: the jobs of a queue by state; reads the whole table
SELECT state, count(*) FROM redrive_jobs WHERE queue = :queue GROUP BY state;
