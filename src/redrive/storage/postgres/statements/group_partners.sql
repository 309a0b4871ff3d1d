-- purpose: what a move out of these groups, or of these messages, or into those groups, may touch: own group, a group, its queue; and the dead-letter queues of these queues
-- index: groups_queue_id_key_key, messages_message_id_key
SELECT g.id, g.id, g.queue_id FROM groups g WHERE g.id = ANY ($1::bigint[])
UNION ALL
SELECT g.id, d.id, t.id FROM groups g JOIN queues q ON q.id = g.queue_id
JOIN queues t ON t.name = coalesce(q.dead_letter_queue, CASE WHEN NOT q.holds_dead THEN q.name || '.dlq' END)
LEFT JOIN groups d ON d.queue_id = t.id AND d.key = g.key
WHERE g.id = ANY ($1)
UNION ALL
SELECT m.group_id, s.id, q.id FROM messages m JOIN dead_letters r ON r.message_id = m.message_id AND r.closed_ms IS NULL
JOIN queues q ON q.name = r.origin LEFT JOIN groups s ON s.queue_id = q.id AND s.key = r.source_group
WHERE m.message_id = ANY ($2::uuid[])
UNION ALL
SELECT NULL, g.id, g.queue_id FROM unnest($3::bigint[], $4::text[]) AS w (queue_id, key)
JOIN groups g ON g.queue_id = w.queue_id AND g.key = w.key
UNION ALL
SELECT NULL, NULL, t.id FROM queues q
JOIN queues t ON t.name = coalesce(q.dead_letter_queue, CASE WHEN NOT q.holds_dead THEN q.name || '.dlq' END)
WHERE q.id = ANY ($5::bigint[])
