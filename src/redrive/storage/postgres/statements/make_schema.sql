-- purpose: make the schema where it is missing; a role that may not make one can be given one
DO $$ BEGIN
    IF to_regnamespace(quote_ident(current_setting('redrive.schema'))) IS NULL THEN
        EXECUTE format('CREATE SCHEMA %I', current_setting('redrive.schema'));
    END IF;
END $$
