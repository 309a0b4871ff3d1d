-- purpose: the schema to make, for make_schema.sql
SELECT set_config('redrive.schema', $1::text, false)
