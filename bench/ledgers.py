"""The worker with the ledger on, the receipt in the business transaction, against the same write without it.

Both are workers over the same kind of store in process, and both commit one business row a job with its sync.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

from bench.drain import drain, publish
from bench.rows import Figure, Row, Settings, in_turn
from redrive import connect
from redrive.ledger import Ledger
from redrive.worker import Job

CONCURRENCY = 8
PREFETCH = 200
JOBS_A_ROUND = 50  # of --work
_TABLE = "CREATE TABLE settled (number INTEGER NOT NULL, shard TEXT NOT NULL)"


class Connections:
    """One autocommit connection a thread for the side without a ledger; all closed at the end."""

    def __init__(self, open_one: Callable[[], Any]) -> None:
        self._open_one = open_one
        self._own = threading.local()
        self._all: list[Any] = []

    def get(self) -> Any:
        """This thread's."""
        if not hasattr(self._own, "connection"):
            self._own.connection = self._open_one()
            self._all.append(self._own.connection)
        return self._own.connection

    def close(self) -> None:
        """Close them all; their threads have ended."""
        for connection in self._all:
            connection.close()
        self._all.clear()


class Sides:
    """Two workers over one store, each over a queue of its own and jobs with keys of their own."""

    def __init__(self, store: str, ledger: str, open_one: Callable[[], Any], insert: str) -> None:
        self._queue = connect(store)
        self._ledger, self._open_one, self._insert = ledger, open_one, insert
        self._drains = 0

    def with_ledger(self, jobs: int) -> float:
        """Jobs a second: receipt, attempt and business row in one transaction."""

        def settle(job: Job, db: Any) -> None:
            db.execute(self._insert, (job.payload["number"], "eu-west"))

        return self._drain("with", jobs, settle, ledger=self._ledger)

    def without(self, jobs: int) -> float:
        """Jobs a second: the business row alone in a transaction, at least once."""
        connections = Connections(self._open_one)

        def settle(job: Job) -> None:
            connections.get().execute(self._insert, (job.payload["number"], "eu-west"))

        with contextlib.closing(connections):
            return self._drain("without", jobs, settle)

    def close(self) -> None:
        """Close the store."""
        self._queue.close()

    def _drain(self, side: str, jobs: int, handler: Callable[..., Any], **settings: Any) -> float:
        self._drains += 1
        publish(self._queue, side, [{"number": n} for n in range(jobs)], f"settlement-{self._drains}")
        settings |= {"concurrency": CONCURRENCY, "prefetch": PREFETCH, "relay": False}
        return jobs / drain(self._queue, side, jobs, handler, **settings)


def _measure(sides: Sides, settings: Settings) -> Figure:
    jobs = settings.work * JOBS_A_ROUND
    with contextlib.closing(sides):
        sides.with_ledger(jobs // 10), sides.without(jobs // 10)
        pairs = in_turn(settings.pairs, lambda: sides.with_ledger(jobs), lambda: sides.without(jobs))
    return Figure.of("/s", pairs, f"{jobs:,} jobs a drain on {CONCURRENCY} threads")


def _sqlite(settings: Settings) -> Figure:
    path = settings.folder / "game.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute(_TABLE)
    with contextlib.closing(Ledger(url := f"sqlite:///{path}")) as ledger:
        ledger.install()

    def open_one() -> sqlite3.Connection:
        """The ledger's settings: autocommit, FULL, a bounded wait for the one writer."""
        return sqlite3.connect(path, isolation_level=None, timeout=5, check_same_thread=False)

    store = f"sqlite:///{settings.folder / 'queue.db'}"
    return _measure(Sides(store, url, open_one, "INSERT INTO settled VALUES (?, ?)"), settings)


def _postgres(settings: Settings) -> Figure:
    import psycopg

    url = settings.need_postgres()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_TABLE)
    with contextlib.closing(Ledger(url)) as ledger:
        ledger.install()
    insert = "INSERT INTO settled VALUES (%s, %s)"
    return _measure(Sides(url, url, lambda: psycopg.connect(url, autocommit=True), insert), settings)


ROWS = (
    Row(
        "ledger-sqlite",
        "SQLite: worker with the ledger on (receipt in the business transaction) against the same business "
        "write without",
        0.7, "at least", _sqlite,
    ),
    Row(
        "ledger-postgres",
        "PostgreSQL: worker with the ledger on (receipt in the business transaction) against the same "
        "business write without",
        0.7, "at least", _postgres,
    ),
)  # fmt: skip
