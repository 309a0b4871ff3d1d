-- purpose: a transaction that owns the write lock from its start, so that it can never be refused half-way
BEGIN IMMEDIATE;
