-- purpose: a plan's members by outcome
-- index: items_by_outcome
SELECT outcome, count(*) FROM plan_items INDEXED BY items_by_outcome WHERE plan = ? GROUP BY outcome
