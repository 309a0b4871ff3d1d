-- purpose: messages at rest in groups
SELECT count(*) FROM groups g JOIN messages m ON m.group_id = g.id AND m.slot = 2 WHERE g.queue_id = $1::bigint
