-- purpose: the migrations that the schema has seen
SELECT name FROM migrations
