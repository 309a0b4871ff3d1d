-- purpose: removes the exercise's own tables, whether they were made or not
DROP TABLE IF EXISTS {effects};
DROP TABLE IF EXISTS {source};
