-- purpose: end the ledger's own transaction
COMMIT;
