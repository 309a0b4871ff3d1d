-- purpose: name the deliveries before this one that nobody recorded; the last one is lost when the queue says so
-- index: redrive_attempts primary key
INSERT INTO redrive_attempts (job_key, message_id, delivery, derived, generation, queue, outcome, ended_at_ms)
WITH RECURSIVE gap (delivery) AS (
    SELECT :first UNION ALL SELECT delivery + 1 FROM gap WHERE delivery < :last
)
SELECT :job_key, :message_id, gap.delivery, 1, :generation, :queue,
       CASE WHEN gap.delivery = :last THEN :last_outcome ELSE 'unrecorded' END, :now_ms
FROM gap
WHERE NOT EXISTS (
    SELECT 1 FROM redrive_attempts AS known
    WHERE known.job_key = :job_key AND known.message_id = :message_id AND known.delivery = gap.delivery
)
ON DUPLICATE KEY UPDATE delivery = redrive_attempts.delivery;
