-- purpose: name the deliveries before this one that nobody recorded; the last one is lost when the queue says so
-- index: redrive_attempts primary key
INSERT INTO redrive_attempts (job_key, message_id, delivery, derived, generation, queue, outcome, ended_at_ms)
WITH RECURSIVE gap (delivery) AS (
    SELECT CAST(:first AS bigint) UNION ALL SELECT delivery + 1 FROM gap WHERE delivery < :last
)
SELECT CAST(:job_key AS text), CAST(:message_id AS text), gap.delivery, 1, CAST(:generation AS bigint), CAST(:queue AS text),
       CASE WHEN gap.delivery = :last THEN CAST(:last_outcome AS text) ELSE 'unrecorded' END, CAST(:now_ms AS bigint)
FROM gap
WHERE NOT EXISTS (
    SELECT 1 FROM redrive_attempts AS known
    WHERE known.job_key = :job_key AND known.message_id = :message_id AND known.delivery = gap.delivery
)
ON CONFLICT (job_key, message_id, delivery, derived) DO NOTHING;
