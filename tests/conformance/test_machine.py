"""The SQL engines beside the memory model, driven by Hypothesis.

The short form is part of every run of the tests; the long form (`make test-long`) must reach every row of the
transition table in each engine, by chance alone.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import psycopg
import pytest
from hypothesis import settings
from psycopg import sql

from redrive.domain import limits
from redrive.storage.conformance import Clock, Transition, table
from redrive.storage.conformance.machine import EngineMachine
from redrive.storage.port import Engine
from redrive.storage.postgres import PostgresEngine
from redrive.storage.sqlite import SqliteEngine
from tests.conformance.damage import damage_postgres, damage_sqlite

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
LONG_SECONDS = 3_600
SHORT = settings(max_examples=25, stateful_step_count=40)


def reached(seen: Counter[Transition]) -> None:
    """What a run must have seen of the table: every row in the long form, half of it in the short one."""
    missing = table() - set(seen)
    assert len(missing) <= (0 if LONG else len(table()) // 2), sorted(" ".join(row) for row in missing)


class SqliteMachine(EngineMachine):
    """SQLite beside memory."""

    seen: ClassVar[Counter[Transition]] = Counter()

    def make_engine(self, clock: Clock) -> tuple[Engine, Callable[[str], object]]:
        """A fresh file; not synced, since nothing crashes here."""
        self._folder = tempfile.TemporaryDirectory()
        engine = SqliteEngine(Path(self._folder.name) / "store.db", clock, synchronous="OFF")
        return engine, damage_sqlite(engine)

    def teardown(self) -> None:
        """The file goes with its folder."""
        try:
            super().teardown()
        finally:
            self._folder.cleanup()


class PostgresMachine(EngineMachine):
    """PostgreSQL beside memory; a schema each run."""

    seen: ClassVar[Counter[Transition]] = Counter()
    url = ""
    _numbers = itertools.count()

    def make_engine(self, clock: Clock) -> tuple[Engine, Callable[[str], object]]:
        """A fresh schema."""
        schema = f"run{next(self._numbers)}"
        self._schema = schema
        return PostgresEngine(self.url, clock, schema=schema), damage_postgres(self.url, schema)

    def teardown(self) -> None:
        """The schema goes with its run."""
        try:
            super().teardown()
        finally:
            with psycopg.connect(self.url, autocommit=True) as admin:
                admin.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(self._schema)))


@pytest.fixture(autouse=True)
def few_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget has room for two releases, so that chance finds its end."""
    monkeypatch.setattr(limits, "RELEASES_MAX", 2)


@pytest.mark.timeout(LONG_SECONDS if LONG else 60)
class TestSqliteMachine(SqliteMachine.TestCase):  # type: ignore[name-defined, misc]
    """Random commands; every answer and every row agree, and nothing outside the table is seen."""

    settings = settings.default if LONG else SHORT

    def runTest(self) -> None:  # noqa: N802 (unittest's name)
        """Drive both, and look at what was reached."""
        SqliteMachine.seen.clear()
        super().runTest()
        reached(SqliteMachine.seen)


@pytest.mark.timeout(LONG_SECONDS if LONG else 60)
class TestPostgresMachine(PostgresMachine.TestCase):  # type: ignore[name-defined, misc]
    """Random commands; every answer and every row agree, and nothing outside the table is seen."""

    settings = settings.default if LONG else SHORT

    @pytest.fixture(autouse=True)
    def database(self, postgres_url: str) -> None:
        """The database of all runs."""
        PostgresMachine.url = postgres_url

    def runTest(self) -> None:  # noqa: N802 (unittest's name)
        """Drive both, and look at what was reached."""
        PostgresMachine.seen.clear()
        super().runTest()
        reached(PostgresMachine.seen)
