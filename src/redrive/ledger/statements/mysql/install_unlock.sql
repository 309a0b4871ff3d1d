-- purpose: let the next installation go on
SELECT RELEASE_LOCK(CONCAT('redrive_ledger.', DATABASE()));
