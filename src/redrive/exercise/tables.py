"""The exercise's part of the application's database: source records, effects, and its rows in the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cache
from importlib import resources
from typing import Any, Final

from redrive.exercise.options import Names
from redrive.ledger.databases import UrlDatabase

_NAMED: Final = re.compile(r"(?<![:\w]):([a-z_]+)")


class Tables:
    """The tables of one exercise in the database at ``url`` (SQLite, PostgreSQL or MySQL).

    What takes ``db`` (a connection of sqlite3, psycopg or PyMySQL) joins its transaction; everything else is
    committed at once, on a connection of its own.
    """

    def __init__(self, url: str, names: Names) -> None:
        self._names = names
        self._database = UrlDatabase(url)

    def install(self) -> None:
        """Make the tables; a database error when this user may not."""
        self._alone("schema")

    def remove(self, job_keys: Iterable[str]) -> None:
        """Drop the tables, and delete what the ledger knows of these jobs."""
        self._alone("drop")
        with self._database.lend() as driver:
            for job_key in job_keys:
                self._run(driver.handle, "ledger_forget", job_key=self._ledger_key(job_key))

    def add(self, name: str, amount: int | None) -> None:
        """A source record."""
        self._alone("source_add", name=name, amount=amount)

    def correct(self, name: str, amount: int) -> None:
        """What was missing in a source record."""
        self._alone("source_correct", name=name, amount=amount)

    def effects(self) -> dict[str, int]:
        """How often each job had its effect, by job key."""
        return {str(key): int(count) for key, count in self._alone("effects_count")}

    def amount(self, db: Any, name: str) -> int | None:
        """The amount of a source record; None when it has none."""
        rows = self._run(db, "source_get", name=name)
        return None if not rows or rows[0][0] is None else int(rows[0][0])

    def apply(self, db: Any, job_key: str, message_id: str, amount: int) -> None:
        """A job's effect."""
        self._run(db, "effect_add", job_key=job_key, message_id=message_id, amount=amount)

    def apply_alone(self, job_key: str, message_id: str, name: str) -> int | None:
        """Look and write without any receipt, as an application without a ledger does; the amount."""
        with self._database.lend() as driver:
            amount = self.amount(driver.handle, name)
            if amount is not None:
                self.apply(driver.handle, job_key, message_id, amount)
            return amount

    def close(self) -> None:
        """Close idle connections."""
        self._database.close()

    def _alone(self, statement: str, **values: Any) -> Sequence[Any]:
        with self._database.lend() as driver:
            return self._run(driver.handle, statement, **values)

    def _run(self, db: Any, statement: str, **values: Any) -> Sequence[Any]:
        """Every statement of a file; the rows of the last one."""
        rows: Sequence[Any] = ()
        with closing(db.cursor()) as cursor:
            for text in _statements(statement, self._database.dialect == "sqlite"):
                cursor.execute(text.format(source=self._names.source, effects=self._names.effects), values)
                rows = cursor.fetchall() if cursor.description else ()
        return rows

    def _ledger_key(self, job_key: str) -> Any:
        return job_key.encode() if self._database.dialect == "mysql" else job_key


@cache
def _statements(name: str, colons: bool) -> tuple[str, ...]:
    text = resources.files("redrive.exercise").joinpath("statements", f"{name}.sql").read_text("utf-8")
    body = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    body = body if colons else _NAMED.sub(r"%(\1)s", body)
    return tuple(part.strip() for part in body.split(";") if part.strip())
