"""Stores in their worst steady states, filled once a run through the engine's own commands."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import apsw

from redrive import seams
from redrive.domain.fingerprint import ErrorInfo
from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.execute.idempotency import SLOT_MS, SLOTS_PROBED
from redrive.storage.port import Engine

BODY = b'{"date":"2026-10-23","shard":"eu-west","note":"' + b"x" * 150 + b'"}'
ERROR = ErrorInfo("TimeoutError", "the provider did not answer", "settle.py:41\nprovider.py:17")
QUEUE = "steady"
CHECKED_MAX = 50_000  # messages up to which a filled store is checked: a sample of the large one
_SLICE = 2_000  # rows of one transaction of the filling
_DAY_MS = 86_400_000
Kind = Literal["sqlite", "postgres"]
Fill = Callable[[Engine], int]  # fills, and says how many messages there are now


def do(engine: Engine, *commands: c.Command) -> list[Any]:
    """The results of ``commands``, applied in one transaction."""
    return engine.run(lambda tx: apply(tx, list(commands))).results


def entries(count: int, **fields: Any) -> list[c.Entry | Any]:
    """``count`` messages of the benchmark's body."""
    return [c.Entry(BODY, **fields) for _ in range(count)]


class Stores:
    """Filled stores of one row by name: SQLite files in ``folder``, and databases of the server at
    ``postgres`` (a URL whose role may create them), which are dropped at the end.
    """

    def __init__(self, folder: Path, postgres: str | None) -> None:
        self.folder, self._postgres = folder, postgres
        self._prefix = f"steady{os.getpid()}_"
        self._made: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._made:
            self._admin(f"DROP DATABASE IF EXISTS {self._prefix}{name} WITH (FORCE)")

    def url(self, kind: Kind, name: str) -> str:
        """The store's URL, as ``redrive serve --storage`` takes it."""
        if kind == "sqlite":
            return f"sqlite:///{self.folder / name}.db"
        assert self._postgres is not None
        return urlsplit(self._postgres)._replace(path=f"/{self._prefix}{name}").geturl()

    @contextlib.contextmanager
    def open(self, kind: Kind, name: str, fill: Fill, *sql: str) -> Iterator[Engine]:
        """The engine over the store ``name``, filled first."""
        self.fill(kind, name, fill, *sql)
        with self.opened(kind, name) as engine:
            yield engine

    @contextlib.contextmanager
    def opened(self, kind: Kind, name: str, **settings: Any) -> Iterator[Engine]:
        """The engine over a store as it is."""
        if kind == "sqlite":
            from redrive.storage.sqlite import SqliteEngine

            engine: Engine = SqliteEngine(self.folder / f"{name}.db", **settings)
        else:
            from redrive.storage.postgres import PostgresEngine

            engine = PostgresEngine(self.url(kind, name))
        with contextlib.closing(engine):
            yield engine

    def fill(self, kind: Kind, name: str, fill: Fill, *sql: str) -> str:
        """Make the store ``name`` and fill it, by ``fill`` and then by ``sql``; its URL. Without syncs, as
        nobody waits for it; then the visibility map is brought to where it is in the long run."""
        if kind == "postgres":
            self._made.append(name)
            self._admin(f"CREATE DATABASE {self._prefix}{name}")
            self._admin(f"ALTER DATABASE {self._prefix}{name} SET synchronous_commit = off")
        with self.opened(kind, name, **({"synchronous": "OFF"} if kind == "sqlite" else {})) as engine:
            held = fill(engine)
            if held <= CHECKED_MAX:
                findings = engine.check()
                assert not findings, f"the store {name} is not sound: {findings[:3]}"
        for statement in sql:
            self.execute(kind, name, statement)
        if kind == "postgres":
            self._admin(f"ALTER DATABASE {self._prefix}{name} RESET synchronous_commit")
            self.execute(kind, name, "VACUUM ANALYZE")
            self._admin("CHECKPOINT")
        os.sync()  # what the filling left to write must not slow the first measurements
        return self.url(kind, name)

    @contextlib.contextmanager
    def snapshot(self, name: str) -> Iterator[None]:
        """A snapshot of a PostgreSQL store that stays open, as a long report's or a backup's."""
        import psycopg

        with psycopg.connect(self.url("postgres", name)) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute("SELECT count(*) FROM redrive.queues")
            yield
            status = connection.info.transaction_status
            assert status == psycopg.pq.TransactionStatus.INTRANS, "the snapshot did not last"

    def transactions(self, name: str) -> int:
        """How many transactions a PostgreSQL store has had, from the server's own statistics."""
        counted = "SELECT (xact_commit + xact_rollback)::bigint, datname FROM pg_stat_database"
        assert self._postgres is not None
        found = {row[1]: row[0] for row in self._run(self._postgres, counted)}
        return int(found[f"{self._prefix}{name}"])

    def execute(self, kind: Kind, name: str, sql: str) -> list[Any]:
        """Run SQL on a store; the rows."""
        if kind == "sqlite":
            with contextlib.closing(apsw.Connection(str(self.folder / f"{name}.db"))) as file:
                file.pragma("synchronous", "OFF")
                return list(file.execute(sql))
        return self._run(self.url(kind, name), sql)

    def _admin(self, sql: str) -> None:
        assert self._postgres is not None
        self._run(self._postgres, sql)

    @staticmethod
    def _run(url: str, sql: str) -> list[Any]:
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            done = connection.execute(sql.encode())
            return done.fetchall() if done.description else []


def publish(engine: Engine, queue: str, count: int, **fields: Any) -> None:
    """``count`` messages in large transactions, each with a tick, so that the filling is no outage."""
    for done in range(0, count, _SLICE):
        do(engine, c.Publish(queue, entries(min(_SLICE, count - done), **fields)), c.Tick())


def bury(engine: Engine, queue: str, count: int) -> None:
    """``count`` messages through a lease and a reject into the dead letters."""
    publish(engine, queue, count)
    left = count
    while left > 0:
        [leased] = do(engine, c.Lease(queue, min(500, left), 600_000, "fill"))
        assert leased.messages
        do(engine, *[c.Reject(m.message_id, m.handle, error=ERROR) for m in leased.messages], c.Tick())
        left -= len(leased.messages)


def crowd(waiting: int, delayed: int, dead: int) -> Fill:
    """``waiting`` due messages, ``delayed`` ones at a higher priority, ``dead`` ones in the dead-letter
    queue; one standard queue."""

    def fill(engine: Engine) -> int:
        do(engine, c.CreateQueue(QUEUE, "standard", None, {"enable_priority": True, "max_retries": 1000}))
        bury(engine, QUEUE, dead)
        publish(engine, QUEUE, delayed, delay_ms=_DAY_MS, priority=5)
        publish(engine, QUEUE, waiting)
        return waiting + delayed + dead

    return fill


def blocked(behind: int, live: int) -> Fill:
    """A FIFO queue of ``live`` messages in groups of ten, and ``behind`` in one group that a dead letter
    blocks (none: no such group)."""

    def fill(engine: Engine) -> int:
        do(engine, c.CreateQueue(QUEUE, "fifo", None, {"max_retries": 1000}))
        if behind:
            do(engine, c.Publish(QUEUE, entries(1, group="blocked")))
            [head] = do(engine, c.Lease(QUEUE, 1, 600_000, "fill"))
            do(engine, *[c.Reject(m.message_id, m.handle, error=ERROR) for m in head.messages])
            publish(engine, QUEUE, behind, group="blocked")
        for number in range(live // 10):
            do(engine, c.Publish(QUEUE, entries(10, group=f"g{number}")), c.Tick())
        return behind + live

    return fill


def empty(engine: Engine) -> int:
    """A standard queue without messages."""
    do(engine, c.CreateQueue(QUEUE, "standard", None, {}))
    return 0


_ANSWER = '[["00000000-0000-7000-8000-000000000000",false]]'
_RECORDS: dict[Kind, str] = {
    "sqlite": """WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count} - 1)
INSERT INTO idempotency
SELECT {slot}, CAST(unhex(printf('%08x', i * 4294967296 / {count})) || randomblob(12) AS BLOB), randomblob(8),
    CAST('{answer}' AS BLOB) FROM n""",
    "postgres": """INSERT INTO redrive.idempotency
SELECT {slot}, decode(lpad(to_hex(i * 4294967296 / {count}), 8, '0') || substr(md5(i::text), 1, 24), 'hex'),
    decode(substr(md5((-i)::text), 1, 16), 'hex'), convert_to('{answer}', 'UTF8')
FROM generate_series(0::bigint, {count} - 1) AS i""",
}


def recorded(kind: Kind, count: int) -> list[str]:
    """SQL for ``count`` idempotency records as the engines write them, spread evenly over the slots that a
    look-up probes. The keys are random and inserted in order: only this makes ten millions quick."""
    slot = seams.wall_ms() // SLOT_MS
    numbers = range(slot - SLOTS_PROBED + 1, slot + 1)
    return [_RECORDS[kind].format(slot=n, count=count // SLOTS_PROBED, answer=_ANSWER) for n in numbers]
