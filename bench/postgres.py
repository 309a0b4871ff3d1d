"""PostgreSQL: the engine's batches against a bare script with the least SQL that does the same."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from redrive import seams
from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.postgres import PostgresEngine

_NUMBERS = itertools.count(1)
SCHEMA = "bare"
QUEUE = 1_000_000  # a number that no queue has
PUBLISH = """INSERT INTO messages
    (message_id, queue_id, slot, priority, due_ms, expires_ms, enqueued_ms, body_hash, body)
SELECT gen_random_uuid(), %(queue)s, 0, 0, %(now)s, %(now)s + 1000000000, %(now)s, '\\x0011223344556677', body
FROM unnest(%(bodies)s::bytea[]) AS body"""
LEASE = """WITH due AS MATERIALIZED (
    SELECT id FROM messages WHERE queue_id = %(queue)s AND slot = 0 AND priority = 0 AND due_ms <= %(now)s
    ORDER BY due_ms, id LIMIT %(count)s FOR UPDATE SKIP LOCKED)
UPDATE messages m SET slot = 1, attempt = attempt + 1, delivery = delivery + 1, handle = md5(m.id::text),
    leased_ms = %(now)s, lease_until_ms = %(now)s + 30000
FROM due WHERE m.id = due.id RETURNING m.message_id, m.handle, m.job_key, m.attempt, m.headers, m.body"""
ACK = """DELETE FROM messages m USING unnest(%s::uuid[], %s::text[]) AS held (message_id, handle)
WHERE m.message_id = held.message_id AND m.handle = held.handle AND m.slot = 1"""


class BarePostgres:
    """Publish, lease and ack by three statements on a table like ours: no rules, no checksums, no statistics.

    A publish commits by itself; lease and ack are UPDATE, COMMIT, DELETE, COMMIT, as psycopg is used.
    """

    def __init__(self, url: str) -> None:
        PostgresEngine(url, schema=SCHEMA).close()  # makes the tables
        options = f"-c search_path={SCHEMA} -c plan_cache_mode=force_generic_plan"
        self._publisher = psycopg.connect(url, autocommit=True, options=options)
        self._worker = psycopg.connect(url, options=options)
        self._publishes = self._publisher.cursor(binary=True)
        self._works = self._worker.cursor(binary=True)

    def publish(self, body: bytes, count: int) -> None:
        """One batch."""
        given = {"queue": QUEUE, "now": seams.wall_ms(), "bodies": [body] * count}
        self._publishes.execute(PUBLISH, given, prepare=True)

    def lease_and_ack(self, count: int) -> None:
        """One batch: two transactions."""
        given = {"queue": QUEUE, "now": seams.wall_ms(), "count": count}
        rows = self._works.execute(LEASE, given, prepare=True).fetchall()
        self._worker.commit()
        assert len(rows) == count
        self._works.execute(ACK, ([row[0] for row in rows], [row[1] for row in rows]), prepare=True)
        self._worker.commit()

    def close(self) -> None:
        """Hang up."""
        self._publisher.close()
        self._worker.close()


class OurPostgres:
    """The same through the engine: rules, checksums, fences, statistics."""

    def __init__(self, url: str) -> None:
        self._engine = PostgresEngine(url)

    def _do(self, command: c.Command) -> Any:
        return self._engine.run(lambda tx: apply(tx, [command])).results[0]

    def publish(self, body: bytes, count: int) -> None:
        """One batch."""
        self._do(c.Publish("bench", [c.Entry(body) for _ in range(count)]))

    def lease_and_ack(self, count: int) -> None:
        """One batch: two transactions."""
        leased = self._do(c.Lease("bench", count, 30_000, "bench"))
        assert len(leased.messages) == count
        self._do(c.Ack([(m.message_id, m.handle) for m in leased.messages]))

    def close(self) -> None:
        """Hang up."""
        self._engine.close()


@contextlib.contextmanager
def server(url: str | None) -> Iterator[str | None]:
    """``url``, or that of a private server where one can be started; None when there is neither."""
    if url is not None:
        yield url
        return
    from tests.database import PostgresServer, postgres_missing

    if postgres_missing():
        yield None
        return
    with PostgresServer() as private:
        yield private.url()


@contextlib.contextmanager
def fresh(url: str | None) -> Iterator[str | None]:
    """A new empty database beside the one of ``url``, dropped afterwards; None for None."""
    if url is None:
        yield None
        return
    name = f"redrive_bench_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    try:
        yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
