"""Two nodes at the worst moment: one stops inside its transaction, the other comes, and both go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from tests.database import wait_for

from redrive.domain.errors import Conflict
from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.execute.batch import Outcome
from redrive.storage.port import Transaction
from redrive.storage.postgres import PostgresEngine
from redrive.storage.values import AuditRow, Claimed, DeadFilter, Queue

SECONDS = 20.0
Nodes = tuple[PostgresEngine, PostgresEngine]


@pytest.fixture
def nodes(postgres_url: str) -> Iterator[Nodes]:
    """Two engines over one database."""
    pair = PostgresEngine(postgres_url), PostgresEngine(postgres_url)
    yield pair
    for engine in pair:
        engine.close()


def batch(engine: PostgresEngine, *commands: c.Command) -> list[Any]:
    """Apply commands as one batch; their results."""
    return engine.run(lambda tx: apply(tx, commands)).results


def lease(engine: PostgresEngine, queue: str = "jobs", count: int = 10) -> list[Claimed]:
    """Lease messages for a minute."""
    messages: list[Claimed] = batch(engine, c.Lease(queue, count, 60_000, "consumer"))[0].messages
    return messages


def publish(queue: str, *groups: str) -> c.Publish:
    """A message for each of these groups."""
    return c.Publish(queue, [c.Entry(b"1", group=group) for group in groups])


def create(queue: str, kind: Any = "standard", **settings: object) -> c.CreateQueue:
    """A queue with these settings."""
    return c.CreateQueue(queue, kind, None, settings)


def update(queue: str, **settings: object) -> c.UpdateQueue:
    """These settings changed."""
    return c.UpdateQueue(queue, settings)


def crossed(
    url: str,
    first: PostgresEngine,
    before: Sequence[c.Command],
    second: PostgresEngine,
    after: Sequence[c.Command],
    stop: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """``first`` applies ``before`` and stops at its first call of ``stop`` (None: before its COMMIT) until
    ``second``, with ``after``, waits for it or is done. The results of both."""
    stopped, on = threading.Event(), threading.Event()

    def pause() -> None:
        stopped.set()
        wait_for(on, SECONDS, "the other node")

    def work(tx: Transaction) -> Outcome:
        if stop is not None and not stopped.is_set():
            whole: Callable[..., Any] = getattr(tx, stop)

            def halting(*values: Any) -> Any:
                if not stopped.is_set():
                    pause()
                return whole(*values)

            setattr(tx, stop, halting)
        outcome = apply(tx, before)
        if stop is None and not stopped.is_set():
            pause()
        return outcome

    results: dict[str, list[Any]] = {}
    one = threading.Thread(target=lambda: results.update(first=first.run(work).results))
    other = threading.Thread(target=lambda: results.update(second=batch(second, *after)))
    waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(url, autocommit=True) as admin:
        one.start()
        wait_for(stopped, SECONDS, "the first node to stop")
        other.start()
        wait_for(
            lambda: not other.is_alive() or admin.execute(waits.encode()).fetchall(),
            SECONDS,
            "the second node",
        )
        on.set()
        for thread in (one, other):
            thread.join(SECONDS)
            assert not thread.is_alive()
    return results["first"], results["second"]


def deadlocks(nodes: Nodes, url: str) -> int:
    """How many deadlocks the server has seen in this database; closes the nodes, so that all are told."""
    for engine in nodes:
        engine.close()
    alone = (
        "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    seen = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    with psycopg.connect(url, autocommit=True) as admin:
        wait_for(lambda: admin.execute(alone.encode()).fetchone() == (True,), SECONDS, "the sessions to end")
        [(count,)] = admin.execute(seen.encode()).fetchall()
    return int(count)


def test_levels_are_not_turned_off_under_a_publish(nodes: Nodes, postgres_url: str) -> None:
    """What another node is publishing at a level counts when levels are to be turned off."""
    one, other = nodes
    batch(one, create("jobs", enable_priority=True))
    urgent = c.Publish("jobs", [c.Entry(b"1", priority=7)])
    _, [refusal] = crossed(postgres_url, one, [urgent], other, [update("jobs", enable_priority=False)])
    assert isinstance(refusal, Conflict)
    assert len(lease(other)) == 1


def test_no_group_stays_blocked_by_a_policy_that_is_over(nodes: Nodes, postgres_url: str) -> None:
    """What another node is dead-lettering under block is freed by the change to continue."""
    one, other = nodes
    batch(one, create("jobs", "fifo", fifo_on_dead="block"), publish("jobs", "a", "a"))
    [head] = lease(one)
    reject = c.Reject(head.message_id, head.handle)
    crossed(postgres_url, one, [reject], other, [update("jobs", fifo_on_dead="continue")])
    assert len(lease(other)) == 1


@pytest.mark.parametrize("limits", [(5, None), (None, 5)])
@pytest.mark.parametrize(
    "command",
    [
        c.Lease("jobs", 1, auto_create=False),
        c.Publish("jobs", [c.Entry(b"1")], auto_create=False),
        c.SetQueueState("jobs", "paused"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_queue_that_changes_its_limit_is_found(
    nodes: Nodes, postgres_url: str, command: c.Command, limits: tuple[int | None, int | None]
) -> None:
    """A queue that gets or loses its limit while its row is waited for is not taken for missing."""
    one, other = nodes
    batch(one, create("jobs"))
    batch(one, update("jobs", max_in_flight=limits[0]))
    _, [answer] = crossed(postgres_url, one, [update("jobs", max_in_flight=limits[1])], other, [command])
    assert not isinstance(answer, Exception)


def test_two_nodes_delete_and_publish_crosswise(nodes: Nodes, postgres_url: str) -> None:
    """Who changes a queue holds it alone from the start: nobody raises a shared lock."""
    one, other = nodes
    batch(one, create("jobs"), create("more"))
    ours = [c.Publish("jobs", [c.Entry(b"1")]), c.SetQueueState("more", "deleting")]
    theirs = [c.Publish("more", [c.Entry(b"1")]), c.SetQueueState("jobs", "deleting")]
    crossed(postgres_url, one, ours, other, theirs, "queues_naming")
    assert deadlocks(nodes, postgres_url) == 0


def test_a_new_group_is_made_after_the_others_are_held(nodes: Nodes, postgres_url: str) -> None:
    """Nobody who holds a new group waits for an old one."""
    one, other = nodes
    batch(one, create("jobs", "fifo"), publish("jobs", "old"))
    [head] = lease(one)
    ours = [c.Nack(head.message_id, head.handle), publish("jobs", "new")]
    crossed(postgres_url, one, ours, other, [publish("jobs", "new", "old")], "groups")
    assert deadlocks(nodes, postgres_url) == 0


def test_prune_holds_no_group_while_it_waits(nodes: Nodes, postgres_url: str) -> None:
    """Pruning comes last, when nobody is waited for any more."""
    one, other = nodes
    batch(one, create("jobs", "fifo"), publish("jobs", "idle"))
    [done] = lease(one)
    batch(one, c.Ack([(done.message_id, done.handle)]), publish("jobs", "a"))
    crossed(
        postgres_url,
        one,
        [c.Prune(500), publish("jobs", "a")],
        other,
        [publish("jobs", "a", "idle")],
        "groups",
    )
    assert deadlocks(nodes, postgres_url) == 0


def test_a_redrive_does_not_wait_for_leases(nodes: Nodes, postgres_url: str) -> None:
    """A redrive into a queue with a limit goes beside a lease from it."""
    one, other = nodes
    batch(one, create("jobs", "fifo", max_in_flight=9), create("more", "fifo"))
    batch(one, publish("jobs", "a", "b"), publish("more", "a"))
    [dead], [held] = lease(one, count=1), lease(one, "more")
    batch(one, c.Reject(dead.message_id, dead.handle))
    extend = c.Extend(held.message_id, held.handle, visibility_ms=9_000)
    ours = [extend, c.Redrive(DeadFilter(queue="jobs"), 9, explicit=False)]
    [_, redriven], _ = crossed(postgres_url, one, ours, other, [extend, c.Lease("jobs", 1)], "select_dead")
    assert deadlocks(nodes, postgres_url) == 0
    assert redriven.redriven == 1


def test_settings_over_an_implicit_queue_free_its_groups(nodes: Nodes) -> None:
    """Creating over an implicit queue with continue frees the groups that block held."""
    node, _ = nodes
    batch(node, publish("jobs", "a", "a"))
    [head] = lease(node)
    batch(node, c.Reject(head.message_id, head.handle))
    assert lease(node) == []
    [created] = batch(node, create("jobs", "fifo", fifo_on_dead="continue"))
    assert isinstance(created.queue, Queue)
    assert len(lease(node)) == 1


def test_a_cancel_is_audited_with_its_time(nodes: Nodes, postgres_url: str) -> None:
    """The audit row of a cancel has the engine's time."""
    node, _ = nodes
    [[published]] = batch(node, c.Publish("jobs", [c.Entry(b"1")]))
    batch(
        node,
        c.Cancel(published.message_id, None, AuditRow(0, "x", "queue.cancel", "jobs", None, None, "done")),
    )
    rows = node.read(lambda reader: reader.audit_page(0, 10))
    assert rows[0].at_ms > 0
