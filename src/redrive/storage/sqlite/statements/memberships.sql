-- purpose: the plans that had this message as a member, oldest first
-- index: items_by_message
SELECT p.number, p.plan_id, p.queue, p.state, p.made_with, p.progress, i.plan, i.n, i.message_id, i.redrive_count, i.job_key, i.died_of, i.outcome, i.sent_ms, i.finished_ms, i.failures, i.failed_ms, i.returned, i.detail
FROM plan_items i INDEXED BY items_by_message JOIN plans p ON p.number = i.plan WHERE i.message_id = ? ORDER BY i.plan
