"""The game's statements on a DB-API connection: sqlite3, psycopg or PyMySQL, whichever it is given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from redrive.arena.records import Match, Payment, Shard

_NAMED = re.compile(r"(?<![:\w]):([a-z_]+)")
_DIALECTS = {"sqlite3": "sqlite", "psycopg": "postgres", "pymysql": "mariadb"}
BUSY_SECONDS = 5


class Game:
    """The game's tables on ``connection``; joins its transaction, never commits and never closes it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.dialect = _dialect_of(connection)

    def install(self) -> None:
        """Create the tables where they are missing."""
        for statement in _script(self.dialect):
            self._cursor(statement, {}).close()

    def rows(self, name: str, **values: Any) -> list[dict[str, Any]]:
        """What the statement ``statements/<name>.sql`` answers, each row by its column names."""
        cursor = self._cursor(_statement(name, self.dialect), values)
        try:
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        finally:
            cursor.close()

    def write(self, name: str, **values: Any) -> int:
        """Run a writing statement; how many rows it changed."""
        cursor = self._cursor(_statement(name, self.dialect), values)
        try:
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def write_many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a writing statement once for each of ``rows``."""
        cursor = self.connection.cursor()
        try:
            cursor.executemany(_statement(name, self.dialect), [dict(row) for row in rows])
        finally:
            cursor.close()

    def shard(self, shard: str) -> Shard | None:
        """The shard's record, or None when the game has no such shard."""
        found = self.rows("shard_get", shard=shard)
        return Shard(**found[0]) if found else None

    def payments_of_day(self, shard: str, day: str) -> list[Payment]:
        """The shard's payments of one UTC day."""
        return [Payment(**row) for row in self.rows("payments_of_day", shard=shard, day=day)]

    def payments_sharing_refs(self, shard: str, day: str) -> list[Payment]:
        """Payments of any shard and day that hold a reference which this shard's day holds too."""
        return [Payment(**row) for row in self.rows("payments_sharing_refs", shard=shard, day=day)]

    def payments_by_ref(self, provider_ref: str) -> list[Payment]:
        """The payments of any shard that hold ``provider_ref``."""
        return [Payment(**row) for row in self.rows("payments_by_ref", provider_ref=provider_ref)]

    def match(self, match_id: str) -> Match | None:
        """The match as it is now, or None."""
        found = self.rows("match_get", match_id=match_id)
        return Match(**found[0]) if found else None

    def _cursor(self, statement: str, values: Mapping[str, Any]) -> Any:
        cursor = self.connection.cursor()
        cursor.execute(statement, dict(values))
        return cursor


def open_game(url: str) -> Any:
    """A DB-API connection in manual-commit mode to ``sqlite:///path``, ``postgresql://…`` or ``mysql://…``."""
    scheme = urlsplit(url).scheme.split("+")[0]
    if scheme == "sqlite":
        import sqlite3

        connection = sqlite3.connect(
            str(Path(url.split(":///", 1)[1])), timeout=BUSY_SECONDS, check_same_thread=False
        )
        connection.execute("pragma journal_mode=wal")
        return connection
    if scheme in ("postgresql", "postgres"):
        import psycopg

        return psycopg.connect(url)
    if scheme in ("mysql", "mariadb"):
        import pymysql

        parts = urlsplit(url)
        return pymysql.connect(
            host=parts.hostname or "127.0.0.1", port=parts.port or 3306, user=unquote(parts.username or ""),
            password=unquote(parts.password or ""), database=parts.path.lstrip("/"), autocommit=False,
        )  # fmt: skip
    raise ValueError(f"a game database is sqlite:///…, postgresql://… or mysql://…, got scheme {scheme!r}")


def _dialect_of(connection: Any) -> str:
    for kind in type(connection).__mro__:
        dialect = _DIALECTS.get(kind.__module__.split(".")[0])
        if dialect:
            return dialect
    raise TypeError(f"the game runs on sqlite3, psycopg or PyMySQL connections, got {type(connection)!r}")


@cache
def _statement(name: str, dialect: str) -> str:
    text = resources.files(__package__).joinpath("statements", f"{name}.sql").read_text("utf-8")
    body = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return body if dialect == "sqlite" else _NAMED.sub(r"%(\1)s", body)


def _script(dialect: str) -> list[str]:
    text = resources.files(__package__).joinpath("schema", f"{dialect}.sql").read_text("utf-8")
    body = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return [part.strip() for part in body.split(";\n") if part.strip()]
