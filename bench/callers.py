"""Many callers with one message each against one commit after the other.

The callers are coroutines of one loop that submit to the committer and hear from it through the mailbox, as
the server's requests do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from bench.bare import BareSqlite
from bench.cycles import BODY
from bench.postgres import BarePostgres
from bench.rows import Figure, Row, Settings, rates
from redrive.api.edge import Mailbox
from redrive.service import Service
from redrive.storage import commands as c
from redrive.storage.port import Engine
from redrive.storage.postgres import PostgresEngine
from redrive.storage.sqlite import SqliteEngine

CALLERS = 64
_SECONDS_MAX = 120.0


def publish_each(service: Service, times: int) -> None:
    """Each of the callers publishes one message ``times`` times, each time until it is on disk."""

    async def caller(loop: asyncio.AbstractEventLoop, mailbox: Mailbox) -> None:
        for _ in range(times):
            done: asyncio.Future[object] = loop.create_future()
            service.committer.submit(
                c.Publish("single", [c.Entry(BODY)]), lambda result, done=done: mailbox.post(done, result)
            )
            await done

    async def all_of_them() -> None:
        loop = asyncio.get_running_loop()
        mailbox = Mailbox(loop)
        every = (caller(loop, mailbox) for _ in range(CALLERS))
        await asyncio.wait_for(asyncio.gather(*every), _SECONDS_MAX)

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
