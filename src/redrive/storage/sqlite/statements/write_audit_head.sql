-- purpose: where the audit log's chain ends now
UPDATE audit_head SET number = ?, hash = ? WHERE one = 1
