-- purpose: a schema of its own for one demo night on PostgreSQL; {schema} is filled in as an identifier
create schema {schema}
