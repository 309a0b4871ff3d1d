-- purpose: the record that a job is about
-- index: primary key
SELECT amount FROM {source} WHERE name = :name;
