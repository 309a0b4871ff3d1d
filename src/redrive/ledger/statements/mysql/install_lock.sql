-- purpose: one installation at a time
SELECT GET_LOCK(CONCAT('redrive_ledger.', DATABASE()), 5);
