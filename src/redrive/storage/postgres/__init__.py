"""PostgreSQL through psycopg's libpq: any number of nodes over one database."""

from redrive.storage.postgres.engine import PostgresEngine

__all__ = ["PostgresEngine"]
