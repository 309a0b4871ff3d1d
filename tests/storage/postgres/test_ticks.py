"""The liveness tick on several nodes: while one of them is alive there is no outage, however long a batch of
another takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.execute.batch import Outcome
from redrive.storage.port import Transaction
from redrive.storage.postgres import PostgresEngine

Nodes = tuple[PostgresEngine, PostgresEngine]
START_MS = 1_800_000_000_000


class DatabaseClock:
    """The database's own clock, for every session at once; it moves when told, also inside a transaction."""

    def __init__(self, admin: psycopg.Connection) -> None:
        self._admin = admin
        admin.execute("CREATE TABLE redrive.test_clock AS SELECT 0::bigint AS now_ms")
        admin.execute(
            "CREATE OR REPLACE FUNCTION redrive.redrive_now_ms() RETURNS bigint LANGUAGE sql VOLATILE "
            "AS 'SELECT now_ms FROM redrive.test_clock'"
        )
        self.pass_ms(START_MS)

    def pass_ms(self, ms: int) -> None:
        """Let time go on."""
        self._admin.execute("UPDATE redrive.test_clock SET now_ms = now_ms + %s", (ms,))

    def ticks(self, node: PostgresEngine, seconds: int) -> None:
        """Time goes on, and this node ticks every second."""
        for _ in range(seconds):
            self.pass_ms(1_000)
            batch(node, c.Tick())

    def behind_ms(self) -> int:
        """How far the tick is behind the clock."""
        found = self._admin.execute("SELECT t.now_ms - c.tick_ms FROM redrive.test_clock t, redrive.clock c")
        [(behind,)] = found.fetchall()
        return int(behind)


@pytest.fixture
def clock(nodes: Nodes, postgres_url: str) -> Iterator[DatabaseClock]:
    """The clock of the nodes' database."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        yield DatabaseClock(admin)


def batch(engine: PostgresEngine, *commands: c.Command) -> Outcome:
    """Apply commands as one batch."""
    return engine.run(lambda tx: apply(tx, commands))


def test_a_long_batch_does_not_set_the_tick_back(nodes: Nodes, clock: DatabaseClock) -> None:
    """The tick of a batch that takes eight seconds is older than the other node's by then."""
    one, other = nodes
    batch(one, c.Publish("jobs", [c.Entry(b"1")]))
    [message] = batch(one, c.Lease("jobs", 1, 60_000)).results[0].messages  # type: ignore[attr-defined]

    def work(tx: Transaction) -> None:
        apply(tx, [c.Tick()])
        clock.ticks(other, 8)

    one.run(work)
    assert clock.behind_ms() == 0
    assert batch(other, c.Expire()).outage_ms == 0
    clock.ticks(other, 52)
    assert batch(other, c.Expire()).results == [1], "the lease ends when it was to end"
    assert batch(one, c.Ack([(message.message_id, message.handle)])).results == [[True]]


def test_a_long_batch_leaves_the_tick_to_others(nodes: Nodes, clock: DatabaseClock) -> None:
    """Until its very end a batch with a tick in it does not hold the tick."""
    one, other = nodes
    batch(one, c.CreateQueue("jobs", "fifo", None, {}), c.Tick())

    def work(tx: Transaction) -> None:
        insert = tx.insert

        def slow(rows: Any) -> None:
            clock.ticks(other, 4)
            assert clock.behind_ms() == 0
            insert(rows)

        tx.insert = slow  # type: ignore[method-assign]
        apply(tx, [c.Tick(), c.Publish("jobs", [c.Entry(b"1", group="a")])])

    one.run(work)
    assert clock.behind_ms() == 0


def test_an_outage_that_another_node_took_out_is_over(nodes: Nodes, clock: DatabaseClock) -> None:
    """Who comes second reports none, and does not set the tick back."""
    one, other = nodes
    batch(one, c.Tick())
    clock.pass_ms(60_000)

    def work(tx: Transaction) -> Outcome:
        assert tx.last_tick_ms() == START_MS  # the batch begins before the other's
        assert batch(other, c.Tick()).outage_ms == 60_000
        clock.ticks(other, 8)
        return apply(tx, [c.Expire()])

    assert one.run(work).outage_ms == 0
    assert clock.behind_ms() == 0
    assert batch(one, c.Expire()).outage_ms == 0


def test_an_outage_of_all_nodes_is_seen(nodes: Nodes, clock: DatabaseClock) -> None:
    """The control: while nobody ticks, the batch that takes eight seconds is an outage like any other."""
    one, other = nodes
    one.run(lambda tx: (apply(tx, [c.Tick()]), clock.pass_ms(8_000)))
    assert clock.behind_ms() == 8_000
    assert batch(other, c.Expire()).outage_ms == 8_000
    assert batch(one, c.Expire()).outage_ms == 0
    clock.pass_ms(-6_000)  # a failover to a server whose clock is behind
    assert batch(one, c.Expire()).outage_ms == -6_000
    assert clock.behind_ms() == 0
