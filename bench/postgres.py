"""PostgreSQL: the engine's batches against a bare script with the least SQL that does the same."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg

from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.postgres import PostgresEngine

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
def database(url: str | None) -> Iterator[str | None]:
    """``url``, or a private server where the tests' one can be started; None when there is neither."""
    if url is not None:
        yield url
        return
    from tests.database import PostgresServer, postgres_missing

    if postgres_missing():
        yield None
        return
    with PostgresServer() as server, server.fresh_database() as own:
        yield own
