-- purpose: removes the ledger's rows of one job of the exercise
-- index: primary keys
DELETE FROM redrive_attempts WHERE job_key = :job_key;
DELETE FROM redrive_payloads WHERE job_key = :job_key;
DELETE FROM redrive_jobs WHERE job_key = :job_key;
