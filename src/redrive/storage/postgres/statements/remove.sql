-- purpose: delete messages that this transaction holds
-- fenced by: delivery
-- index: messages_pkey
DELETE FROM messages m USING unnest($1::bigint[], $2::bigint[]) AS w (id, delivery) WHERE m.id = w.id AND m.delivery = w.delivery
