-- purpose: one source record; without an amount no job can be made of it
INSERT INTO {source} (name, amount) VALUES (:name, :amount);
