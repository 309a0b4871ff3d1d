"""Several nodes append to one audit log: one chain, no gap, nobody held up for long, no deadlock."""

from __future__ import annotations

import threading

import psycopg
from tests.storage.postgres.test_crossings import batch, crossed, deadlocks
from tests.storage.postgres.test_engine import together

from redrive.storage import commands as c
from redrive.storage.audit_chain import Walk
from redrive.storage.execute import apply
from redrive.storage.port import Transaction
from redrive.storage.postgres import PostgresEngine
from redrive.storage.values import AuditRow

ROUNDS = 40
Nodes = tuple[PostgresEngine, PostgresEngine]


def row(target: str) -> AuditRow:
    """An action."""
    return AuditRow(0, "ops", "queue.pause", target, None, None, "done")


def walked(engine: PostgresEngine) -> Walk:
    """The whole chain."""
    rows, head = engine.read(lambda reader: (reader.audit_chain(-(2**63), 10_000), reader.audit_head()))
    walk = Walk()
    walk.follow(rows, head, last=True)
    return walk


def test_one_chain_of_many_nodes(postgres_url: str) -> None:
    """Three nodes act at the same time, among other work on the same queues and groups."""
    nodes = [PostgresEngine(postgres_url) for _ in range(3)]
    for name in ("a", "b"):
        batch(nodes[0], c.CreateQueue(name, "fifo", None, {}))

    def act(node: PostgresEngine) -> None:
        for n in range(ROUNDS):
            first, second = ("a", "b") if n % 2 else ("b", "a")
            publish = c.Publish(first, [c.Entry(b"1", group="g")])
            change = c.UpdateQueue(second, {"max_retries": n}, None, row(second))
            batch(node, publish, change, c.WriteAudit(row(first)), c.Lease(first, 1, 1_000), c.Tick())

    together(*[lambda node=node: act(node) for node in nodes])
    walk = walked(nodes[0])
    assert (walk.broken, walk.number) == (None, len(nodes) * ROUNDS * 2)
    nodes[2].close()
    assert deadlocks((nodes[0], nodes[1]), postgres_url) == 0


def test_the_end_of_the_chain_is_waited_for_last(nodes: Nodes, postgres_url: str) -> None:
    """A node that holds it up holds up other actions, and no publish, lease or ack of the same queue."""
    one, other = nodes
    batch(one, c.CreateQueue("jobs", None, None, {}))
    held, go_on = threading.Event(), threading.Event()

    def stopped(tx: Transaction) -> None:
        apply(tx, [c.WriteAudit(row("jobs"))])
        held.set()
        assert go_on.wait(20)

    thread = threading.Thread(target=lambda: one.run(stopped))
    thread.start()
    assert held.wait(20)
    publish = c.Publish("jobs", [c.Entry(b"1")])
    [[published], leased] = batch(other, publish, c.Lease("jobs", 1, 60_000))
    assert [message.message_id for message in leased.messages] == [published.message_id]
    assert batch(other, c.Ack([(published.message_id, leased.messages[0].handle)])) == [[True]]
    go_on.set()
    thread.join(20)
    assert not thread.is_alive()


def test_two_actions_cross(nodes: Nodes, postgres_url: str) -> None:
    """The one that comes second waits, and finds the row of the first before its own."""
    one, other = nodes
    crossed(postgres_url, one, [c.WriteAudit(row("first"))], other, [c.WriteAudit(row("second"))])
    rows = one.read(lambda reader: reader.audit_chain(0, 10))
    assert [(found.id, found.target) for found in rows] == [(1, "first"), (2, "second")]
    assert walked(one).broken is None


def test_without_the_lock_the_chain_breaks(nodes: Nodes, postgres_url: str) -> None:
    """The control: two rows that both follow the same one."""
    one, _ = nodes
    batch(one, c.WriteAudit(row("jobs")))
    with psycopg.connect(postgres_url, options="-c search_path=redrive") as connection:
        connection.execute(
            "INSERT INTO audit (at_ms, actor, action, target, outcome, detail, id, hash) "
            "SELECT at_ms, actor, action, target, outcome, detail, 2, hash FROM audit"
        )
        connection.execute("UPDATE audit_head SET number = 2")
    broken = walked(one).broken
    assert broken is not None
    assert broken.number == 2
