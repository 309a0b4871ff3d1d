-- purpose: the exercise's own tables, for SQLite, PostgreSQL and MySQL alike
-- index: none is asked for but the key; effects have no unique key on purpose, so that a second one is seen
CREATE TABLE {source} (
    name   VARCHAR(100) NOT NULL PRIMARY KEY,
    amount BIGINT
);
CREATE TABLE {effects} (
    job_key    VARCHAR(200) NOT NULL,
    message_id VARCHAR(200) NOT NULL,
    amount     BIGINT NOT NULL
);
