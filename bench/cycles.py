"""The first rows of the table: batches of 100 by hand, at the engine, through the service and over REST."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from bench.bare import BareSqlite
from bench.clients import Batches, hammer
from bench.postgres import BarePostgres, OurPostgres
from bench.rows import Figure, Row, Settings, Side, rates
from bench.served import KEY, bare_server, redrive_server
from redrive.service import Service
from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.sqlite import SqliteEngine

BODY = b'{"date":"2026-10-23","shard":"eu-west","note":"' + b"x" * 150 + b'"}'
BATCH = 100
CONNECTIONS = 64


def engine_cycle(engine: SqliteEngine, rounds: int) -> None:
    """Publish, lease and ack ``rounds`` batches by engine calls."""

    def do(command: c.Command) -> Any:
        return engine.run(lambda tx: apply(tx, [command])).results[0]

    _cycle(do, rounds)


def service_cycle(service: Service, rounds: int) -> None:
    """The same through the committer."""
    _cycle(service.committer.call, rounds)


def _cycle(do: Callable[[c.Command], Any], rounds: int) -> None:
    for _ in range(rounds):
        do(c.Publish("bench", [c.Entry(BODY) for _ in range(BATCH)]))
        leased = do(c.Lease("bench", BATCH, 30_000, "bench"))
        assert len(leased.messages) == BATCH
        do(c.Ack([(m.message_id, m.handle) for m in leased.messages]))


def _sqlite_engine(settings: Settings) -> Figure:
    with (
        contextlib.closing(SqliteEngine(settings.folder / "ours.db")) as engine,
        contextlib.closing(BareSqlite(settings.folder / "bare.db")) as bare,
    ):
        return rates(lambda n: engine_cycle(engine, n), _many(bare.cycle), settings, BATCH)


def _sqlite_service(settings: Settings) -> Figure:
    service = Service(SqliteEngine(settings.folder / "ours.db"))
    service.start()
    with contextlib.closing(service), contextlib.closing(BareSqlite(settings.folder / "bare.db")) as bare:
        return rates(lambda n: service_cycle(service, n), _many(bare.cycle), settings, BATCH)


def _rest(settings: Settings) -> Figure:
    service = Service(SqliteEngine(settings.folder / "local.db"))
    service.start()
    with (
        contextlib.closing(service),
        redrive_server(settings.folder / "rest.db") as url,
        contextlib.closing(Batches(url, KEY)) as client,
    ):
        return rates(_many(client.cycle), lambda n: service_cycle(service, n), settings, BATCH)


def _single_publishes(settings: Settings) -> Figure:
    with redrive_server(settings.folder / "rest.db") as url, bare_server() as bare_url:
        return rates(
            lambda n: hammer(url, KEY, BODY, CONNECTIONS, n),
            lambda n: hammer(bare_url, KEY, BODY, CONNECTIONS, n),
            settings,
            CONNECTIONS,
        )


def _postgres_publish(settings: Settings) -> Figure:
    with _postgres(settings) as (ours, bare):
        return rates(_many(ours.publish), _many(bare.publish), settings, BATCH)


def _postgres_lease(settings: Settings) -> Figure:
    """Both sides first store what all pairs take, so that the drained tables are equally long."""
    with _postgres(settings) as (ours, bare):
        for _ in range(settings.work * settings.pairs + max(1, settings.work // 10)):
            ours.publish(BODY, BATCH), bare.publish(BODY, BATCH)

        def many(one: Callable[[int], object]) -> Side:
            return lambda rounds: [one(BATCH) for _ in range(rounds)]

        return rates(many(ours.lease_and_ack), many(bare.lease_and_ack), settings, BATCH)


@contextlib.contextmanager
def _postgres(settings: Settings) -> Any:
    url = settings.need_postgres()
    with contextlib.closing(OurPostgres(url)) as ours, contextlib.closing(BarePostgres(url)) as bare:
        yield ours, bare


def _many(one: Callable[[bytes, int], object]) -> Side:
    """Rounds of one batch."""
    return lambda rounds: [one(BODY, BATCH) for _ in range(rounds)]


ROWS = (
    Row(
        "sqlite-engine",
        "SQLite, publish + lease + ack, batches of 100: engine calls against a bare script",
        0.8, "at least", _sqlite_engine,
    ),
    Row(
        "sqlite-service",
        "SQLite, publish + lease + ack, batches of 100: through the service against a bare script",
        0.6, "at least", _sqlite_service,
    ),
    Row(
        "postgres-lease-ack",
        "PostgreSQL, lease + ack, batches of 100: engine calls against bare psycopg (two commits)",
        0.8, "at least", _postgres_lease,
    ),
    Row(
        "postgres-publish",
        "PostgreSQL, publish, batches of 100: engine calls against a bare unnest insert",
        0.7, "at least", _postgres_publish,
    ),
    Row(
        "rest-cycle",
        "publish + lease + ack over REST, one server process, batches of 100, against the service in process",
        0.6, "at least", _rest,
    ),
    Row(
        "rest-single-publish",
        "single durable publishes from 64 connections against the bare HTTP server's answers",
        0.7, "at least", _single_publishes,
    ),
)  # fmt: skip
