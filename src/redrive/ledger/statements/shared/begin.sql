-- purpose: a transaction of the ledger's own
START TRANSACTION;
