-- purpose: a relay's look must not lock the gap that producers insert into
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
