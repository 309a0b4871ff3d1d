-- purpose: take the receipt of a job: the first statement of an effect, in its transaction
-- transition: planned, accepted, isolated or unknown -> completed
-- fenced by: the job key; the first committed completion wins and is final
-- index: redrive_jobs primary key
-- receipt_held tells whose receipt it is: what an upsert touched depends on the connection's flags. MySQL assigns from
-- left to right, so `state`, which the others look at, is last.
INSERT INTO redrive_jobs (
    job_key, queue, state, generation, message_id, delivery, receipt, accepted_at_ms, completed_at_ms, updated_at_ms
)
VALUES (:job_key, :queue, 2, :generation, :message_id, :delivery, :receipt, :now_ms, :now_ms, :now_ms)
ON DUPLICATE KEY UPDATE
    generation = IF(state IN (2, 4), generation, GREATEST(generation, VALUES(generation))),
    message_id = IF(state IN (2, 4), message_id, COALESCE(VALUES(message_id), message_id)),
    delivery = IF(state IN (2, 4), delivery, COALESCE(NULLIF(VALUES(delivery), 0), delivery)),
    receipt = IF(state IN (2, 4), receipt, VALUES(receipt)),
    relay_after_ms = IF(state IN (2, 4), relay_after_ms, NULL),
    claim = IF(state IN (2, 4), claim, NULL),
    completed_at_ms = IF(state IN (2, 4), completed_at_ms, VALUES(completed_at_ms)),
    updated_at_ms = IF(state IN (2, 4), updated_at_ms, VALUES(updated_at_ms)),
    state = IF(state IN (2, 4), state, 2);
