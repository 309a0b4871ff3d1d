-- purpose: how many members were completed since, up to a limit
-- index: items_done
SELECT count(*) FROM (SELECT 1 FROM plan_items INDEXED BY items_done
    WHERE plan = ? AND outcome = 'completed' AND finished_ms >= ? LIMIT ?)
