"""Many callers with one message each against one commit after the other.

The callers are coroutines of one loop that reach the committer by the server's own edge.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from bench.bare import BareSqlite
from bench.cycles import BODY
from bench.postgres import BarePostgres
from bench.rows import Figure, Row, Settings, rates
from redrive.api.edge import Edge
from redrive.service import Service
from redrive.storage import commands as c
from redrive.storage.port import Engine
from redrive.storage.postgres import PostgresEngine
from redrive.storage.sqlite import SqliteEngine

CALLERS = 64
_SECONDS_MAX = 120.0


def publish_each(service: Service, times: int) -> None:
    """Each of the callers publishes one message ``times`` times, each time until it is on disk."""

    async def caller(edge: Edge) -> None:
        for _ in range(times):
            await edge.commit(c.Publish("single", [c.Entry(BODY)]))

    async def all_of_them() -> None:
        edge = Edge(service, readers=1, reads_waiting_max=1, reply_seconds=_SECONDS_MAX)
        try:
            await asyncio.wait_for(asyncio.gather(*(caller(edge) for _ in range(CALLERS))), _SECONDS_MAX)
        finally:
            edge.close(1)

    asyncio.run(all_of_them())


def _measure(engine: Engine, one_by_one: Callable[[], object], settings: Settings) -> Figure:
    """A round is one message of each caller."""
    service = Service(engine)
    service.start()

    def bare(rounds: int) -> None:
        for _ in range(rounds * CALLERS):
            one_by_one()

    with contextlib.closing(service):
        return rates(lambda n: publish_each(service, n), bare, settings, CALLERS)


def _sqlite(settings: Settings) -> Figure:
    with contextlib.closing(BareSqlite(settings.folder / "bare.db")) as bare:
        return _measure(SqliteEngine(settings.folder / "ours.db"), lambda: bare.commit_one(BODY), settings)


def _postgres(settings: Settings) -> Figure:
    url = settings.need_postgres()
    with contextlib.closing(BarePostgres(url)) as bare:
        return _measure(PostgresEngine(url), lambda: bare.publish(BODY, 1), settings)


ROWS = (
    Row(
        "callers-sqlite",
        "64 callers with one message each, in process, against one-by-one bare commits: SQLite",
        8.0, "at least", _sqlite,
    ),
    Row(
        "callers-postgres",
        "64 callers with one message each, in process, against one-by-one bare commits: PostgreSQL",
        8.0, "at least", _postgres,
    ),
)  # fmt: skip
