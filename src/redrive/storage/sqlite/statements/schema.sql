-- purpose: every table and index as it was made
SELECT type, name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL
