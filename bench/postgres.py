"""PostgreSQL: the engine's batches against a bare script with the least SQL that does the same."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.postgres import PostgresEngine

_NUMBERS = itertools.count(1)
TABLE = """DROP TABLE IF EXISTS bare_messages;
CREATE TABLE bare_messages (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    due timestamptz NOT NULL DEFAULT now(),
    leased_until timestamptz,
    body bytea NOT NULL);
CREATE INDEX bare_ready ON bare_messages (due, id) WHERE leased_until IS NULL"""
PUBLISH = "INSERT INTO bare_messages (body) SELECT unnest(%s::bytea[])"
LEASE = """WITH due AS MATERIALIZED (
    SELECT id FROM bare_messages WHERE leased_until IS NULL AND due <= now()
    ORDER BY due, id LIMIT %s FOR UPDATE SKIP LOCKED)
UPDATE bare_messages m SET leased_until = now() + interval '30 s' FROM due
WHERE m.id = due.id RETURNING m.id, m.body"""
ACK = "DELETE FROM bare_messages WHERE id = ANY(%s)"


class BarePostgres:
    """Publish, lease and ack by three statements, one transaction each: no rules, no checksums, no fences."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute(TABLE.encode())
        self._cursor = self._connection.cursor(binary=True)

    def publish(self, body: bytes, count: int) -> None:
        """One batch."""
        self._cursor.execute(PUBLISH, ([body] * count,), prepare=True)

    def lease_and_ack(self, count: int) -> None:
        """One batch: two transactions."""
        rows = self._cursor.execute(LEASE, (count,), prepare=True).fetchall()
        assert len(rows) == count
        self._cursor.execute(ACK, ([row[0] for row in rows],), prepare=True)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


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
