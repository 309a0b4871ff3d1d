-- purpose: removes the schema of a demo night with everything in it; {schema} is filled in as an identifier
drop schema if exists {schema} cascade
