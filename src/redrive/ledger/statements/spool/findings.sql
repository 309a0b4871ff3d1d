-- purpose: findings in the order in which they were made, of one repair's causes or all
SELECT finding FROM findings WHERE :causes IS NULL OR cause IN (SELECT value FROM json_each(:causes)) ORDER BY rowid;
