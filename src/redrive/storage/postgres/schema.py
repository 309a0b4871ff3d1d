"""Bringing a schema up to date, by one node at a time."""

from __future__ import annotations

from redrive.storage.postgres.binary import text
from redrive.storage.postgres.session import Session
from redrive.storage.statements import Statement, migrations


def migrate(session: Session, schema: str) -> list[str]:
    """Apply the migrations that the schema has not seen, each in a transaction of its own; their names."""
    session.fetch("name_schema", text(schema))
    session.script("begin_migration")
    session.command("make_schema")
    session.command("migrations_table")
    session.command("commit")
    known = migrations("redrive.storage.postgres")
    return [statement.name for statement in known if _apply(session, statement)]


def _apply(session: Session, statement: Statement) -> bool:
    session.script("begin_migration")
    try:
        seen = {row[0] for row in session.fetch("migrations_seen")}
        if statement.name not in seen:
            session.execute(statement)
            session.fetch("migration_done", text(statement.name))
        session.command("commit")
    except BaseException:
        session.abandon()
        raise
    return statement.name not in seen
