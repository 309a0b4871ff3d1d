-- purpose: keep a finding
INSERT INTO findings (cause, finding) VALUES (:cause, :finding);
