-- purpose: a plan's members by outcome
-- index: items_by_outcome
SELECT outcome, count(*) FROM plan_items WHERE plan = $1::bigint GROUP BY outcome
