-- purpose: findings by cause
SELECT cause, count(*) FROM findings GROUP BY cause;
