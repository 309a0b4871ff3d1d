-- purpose: how the last delivery of each of these jobs ended
-- index: redrive_attempts primary key
SELECT job_key, outcome, error_type, error_message, worker, ended_at_ms
FROM (
    SELECT attempt.job_key, attempt.outcome, attempt.error_type, attempt.error_message, attempt.worker, attempt.ended_at_ms,
           row_number() OVER (
               PARTITION BY attempt.job_key ORDER BY attempt.generation DESC, attempt.delivery DESC, attempt.derived
           ) AS place
    FROM JSON_TABLE(:keys, '$[*]' COLUMNS (name VARCHAR(200) CHARACTER SET utf8mb4 PATH '$')) AS given
    STRAIGHT_JOIN redrive_attempts AS attempt FORCE INDEX (PRIMARY) ON attempt.job_key = CAST(given.name AS BINARY)
) AS ended
WHERE place = 1;
