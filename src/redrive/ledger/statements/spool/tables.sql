-- purpose: the private, temporary tables of one reconciliation
CREATE TABLE held (job_key TEXT NOT NULL, message_id TEXT NOT NULL, queue TEXT NOT NULL, state TEXT NOT NULL);
CREATE TABLE suspects (job_key TEXT NOT NULL PRIMARY KEY, final INTEGER NOT NULL, message_ids TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE findings (cause TEXT NOT NULL, finding BLOB NOT NULL);
