-- purpose: how many members are sent and unfinished
-- index: in_flight
SELECT count(*) FROM plan_items INDEXED BY in_flight WHERE plan = ? AND outcome = 'sent'
