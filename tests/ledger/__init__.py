"""The ledger's tests: real SQLite files, a real PostgreSQL, a real MariaDB."""
