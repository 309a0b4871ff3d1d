-- purpose: how many members failed since, up to a limit
-- index: items_failed
SELECT count(*) FROM (SELECT 1 FROM plan_items INDEXED BY items_failed
    WHERE plan = ? AND failed_ms IS NOT NULL AND failed_ms >= ? LIMIT ?)
