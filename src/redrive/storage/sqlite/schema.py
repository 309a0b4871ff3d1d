"""The schema as the migrations make it, and a file's schema held against it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import apsw

from redrive.storage.port import Lost
from redrive.storage.statements import load, migrations

_MADE = load("redrive.storage.sqlite")["schema"].sql


@cache
def _wanted() -> frozenset[tuple[str, str, str]]:
    connection = apsw.Connection(":memory:")
    try:
        for statement in migrations("redrive.storage.sqlite"):
            connection.execute(statement.sql)
        return frozenset(connection.execute(_MADE))
    finally:
        connection.close()


def refuse_damaged(connection: apsw.Connection, path: Path) -> None:
    """Raise ``Lost`` when a table or an index is not as the migrations make it.

    SQLite takes a damaged definition for another one that it does not know to be wrong: a column would have
    another name, or another type.
    """
    missing = _wanted() - set(connection.execute(_MADE))
    if missing:
        kind, name, _ = min(missing)
        raise Lost(f"{path}: the schema is damaged: {kind} {name} is not as it was made; restore a backup")


def most_are_ours(tables: Iterable[str]) -> bool:
    """Whether a file with these tables is a store: one damaged name, or a newer version's, is still ours."""
    ours = {name for kind, name, _ in _wanted() if kind == "table"}
    return 2 * len(ours.intersection(tables)) > len(ours)
