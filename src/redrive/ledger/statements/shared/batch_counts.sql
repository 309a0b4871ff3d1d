-- purpose: the members of a batch by state; reads all of them
-- index: redrive_jobs_batch
SELECT state, count(*) FROM redrive_jobs WHERE batch = :batch GROUP BY state;
