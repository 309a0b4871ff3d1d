-- purpose: what changes of a plan
UPDATE plans SET state = ?, finished_ms = ?, progress = ? WHERE number = ?
