-- purpose: what a person does about a record that was wrong
-- index: primary key
UPDATE {source} SET amount = :amount WHERE name = :name;
