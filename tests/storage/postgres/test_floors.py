"""Claims under an old snapshot: what was taken before is not walked over again, and nothing is missed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import pq
from tests.database import wait_for

from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.postgres import PostgresEngine, floors
from redrive.storage.postgres import binary as b
from redrive.storage.postgres.session import SQL, settings

SECONDS = 20.0
BATCHES, BATCH = 60, 100


def do(engine: PostgresEngine, command: c.Command) -> Any:
    """Apply one command; its answer."""
    return engine.run(lambda tx: apply(tx, [command])).results[0]


def publish(engine: PostgresEngine, count: int, **fields: Any) -> list[str]:
    """Publish messages; their ids."""
    entries: list[Any] = [c.Entry(b"{}", **fields)] * count
    return [answer.message_id for answer in do(engine, c.Publish("jobs", entries))]


def lease(engine: PostgresEngine, count: int) -> list[Any]:
    """Lease messages for a minute."""
    messages: list[Any] = do(engine, c.Lease("jobs", count, 60_000, "consumer")).messages
    return messages


def pages(connection: psycopg.Connection, queue_id: int, floor: int) -> int:
    """How many pages a claim of one message reads when it begins to look at ``floor``."""
    return read_by(
        connection, "claim",
        b.int8(queue_id), b.int4s([0]), b.int8(2**62), b.int8(1), b.int8(2**40), b.int8s([floor]),
        b.texts(["handle"]), b.int8(0), b.int8(0), None,
    )  # fmt: skip


def pages_for_heads(connection: psycopg.Connection, queue_id: int, floor: int) -> int:
    """The same of the look for one due group."""
    return read_by(connection, "due_groups", b.int8(queue_id), b.int8(2**62), b.int8(1), b.int8(floor))


def read_by(connection: psycopg.Connection, statement: str, *values: b.Parameter) -> int:
    """How many pages a statement reads with these values; what it does is undone."""
    connection.pgconn.exec_(b"BEGIN")
    result = connection.pgconn.exec_params(
        b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + SQL[statement].sql.encode(),
        values,
        param_formats=[pq.Format.BINARY] * len(values),
    )
    connection.pgconn.exec_(b"ROLLBACK")
    assert result.status == pq.ExecStatus.TUPLES_OK, result.error_message
    plan = json.loads(result.get_value(0, 0) or b"")[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


@pytest.fixture
def node(postgres_url: str) -> Iterator[PostgresEngine]:
    """One engine."""
    engine = PostgresEngine(postgres_url)
    yield engine
    engine.close()


def test_a_claim_under_an_old_snapshot_reads_few_pages(
    node: PostgresEngine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While somebody holds an old snapshot, a claim does not read what was taken since; without its floor it
    would (the control)."""
    monkeypatch.setattr(floors, "TRAIL_MS", 0)
    publish(node, 1)
    [queue] = node.read(lambda reader: reader.queue_page("", 1))
    with psycopg.connect(postgres_url) as old:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM redrive.messages")  # the snapshot is taken here, and stays
        for _ in range(BATCHES):
            publish(node, BATCH)
            do(node, c.Ack([(m.message_id, m.handle) for m in lease(node, BATCH)]))
        assert len(lease(node, BATCH)) > 0
        publish(node, 1)
        with psycopg.connect(settings(postgres_url, "redrive", "writer")) as admin:
            without = pages(admin, queue.id, 0)
            with_floor = pages(admin, queue.id, node._floors.of((queue.id, 0)))
        assert with_floor * 10 < without, (with_floor, without)
        assert len(lease(node, BATCH)) == 1


def test_a_look_for_heads_under_an_old_snapshot_reads_few_pages(
    node: PostgresEngine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for the heads of FIFO groups."""
    monkeypatch.setattr(floors, "TRAIL_MS", 0)
    groups: list[Any] = [c.Entry(b"{}", group=f"g{n}") for n in range(BATCH)]
    do(node, c.Publish("jobs", groups))
    [queue] = node.read(lambda reader: reader.queue_page("", 1))
    with psycopg.connect(postgres_url) as old:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM redrive.messages")  # the snapshot is taken here, and stays
        for _ in range(BATCHES // 2):
            do(node, c.Ack([(m.message_id, m.handle) for m in lease(node, BATCH)]))
            do(node, c.Publish("jobs", groups))
        assert len(lease(node, 1)) == 1
        with psycopg.connect(settings(postgres_url, "redrive", "writer")) as admin:
            without = pages_for_heads(admin, queue.id, 0)
            with_floor = pages_for_heads(admin, queue.id, node._floors.of((queue.id, floors.HEADS)))
        assert with_floor * 5 < without, (with_floor, without)
        assert len(lease(node, BATCH)) == BATCH - 1


def test_a_head_below_the_floor_is_found(node: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another node's head that is due long since: at once when nothing else is due, else by the look from
    the bottom; this node's own lowers the floor."""
    monkeypatch.setattr(floors, "SWEEP_SECONDS", 1e9)
    do(node, c.Publish("jobs", [c.Entry(b"{}", group=name) for name in "ab"]))
    [queue] = node.read(lambda reader: reader.queue_page("", 1))
    key = (queue.id, floors.HEADS)
    [first] = lease(node, 1)
    node._floors.reached(key, 2**62)
    [second] = lease(node, 10)
    assert second.group_key == "b"
    node._floors.reached(key, 2**62)
    do(node, c.Nack(second.message_id, second.handle, delay_ms=0))
    do(node, c.Nack(first.message_id, first.handle, delay_ms=0))
    assert 0 < node._floors.of(key) < 2**61
    assert len(lease(node, 10)) == 2


def test_a_head_below_the_floor_waits_for_the_next_look(
    node: PostgresEngine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While others are due above the floor it is passed over (the control), until the next look."""
    monkeypatch.setattr(floors, "SWEEP_SECONDS", 1e9)
    do(node, c.Publish("jobs", [c.Entry(b"{}", group=name) for name in "abc"]))
    assert len(lease(node, 1)) == 1
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("UPDATE redrive.groups SET head_due_ms = head_due_ms - 100000 WHERE key = 'c'")
    assert [m.group_key for m in lease(node, 1)] == ["b"], "the control"
    monkeypatch.setattr(floors, "SWEEP_SECONDS", 0.0)
    do(node, c.Publish("jobs", [c.Entry(b"{}", group="d")]))
    node._floors._sweep_at = 0.0
    assert [m.group_key for m in lease(node, 1)] == ["c"]


def test_what_is_committed_late_below_the_floor_is_found(
    node: PostgresEngine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that another node commits below this node's floor is found by the look from the bottom."""
    monkeypatch.setattr(floors, "SWEEP_SECONDS", 0.2)
    [late, *_] = publish(node, 3)
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("UPDATE redrive.messages SET slot = 3 WHERE message_id = %s", (late,))
        assert len(lease(node, 10)) == 2
        other.execute(
            "UPDATE redrive.messages SET slot = 0, due_ms = due_ms - 100000 WHERE message_id = %s", (late,)
        )
    [message] = wait_for(lambda: lease(node, 10), SECONDS, "the late row")
    assert message.message_id == late


def test_what_this_node_puts_below_its_floor_is_found_at_once(node: PostgresEngine) -> None:
    """A message that comes back due earlier than the last claim began lowers the floor."""
    [early, late] = publish(node, 2)
    [queue] = node.read(lambda reader: reader.queue_page("", 1))
    [first] = lease(node, 1)
    node._floors.reached((queue.id, 0), 2**62)
    assert lease(node, 10) == [], "the control: what lies below the floor is not seen"
    do(node, c.Nack(first.message_id, first.handle, delay_ms=0))
    assert [message.message_id for message in lease(node, 10)] == [late, early]


def test_what_an_undone_batch_took_is_found_at_once(
    node: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is rolled back after several claims leaves no floor above what it had taken."""
    monkeypatch.setattr(floors, "TRAIL_MS", -1)  # the floor is above the row that it was made from
    ids = publish(node, 1) + publish(node, 1)

    def work(tx: Any) -> None:
        apply(tx, [c.Lease("jobs", 1, 60_000)] * 2)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        node.run(work)
    assert [message.message_id for message in lease(node, 10)] == ids


def test_a_floor_is_forgotten_when_the_clock_goes_back() -> None:
    """What is due by an earlier clock lies below every floor."""
    known = floors.Floors()
    known.begin(10_000, 0.0)
    known.reached((1, 0), 10_000)
    assert known.of((1, 0)) == 10_000 - floors.TRAIL_MS
    known.put((1, 0), 5_000)
    known.put((1, 0), 7_000)
    assert known.of((1, 0)) == 5_000
    known.begin(10_001, 1.0)
    assert known.of((1, 0)) == 5_000
    known.begin(9_000, 2.0)
    assert known.of((1, 0)) == 0
