"""Two nodes at the worst moment: one stops inside its transaction, the other comes, and both go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import pytest
from tests.database import wait_for

from redrive.domain import limits
from redrive.domain.errors import Conflict, LimitExceeded, StaleReceipt
from redrive.domain.fingerprint import fingerprint
from redrive.storage import commands as c
from redrive.storage.conformance.asking import redrive, set_policy
from redrive.storage.execute import apply
from redrive.storage.execute.batch import Outcome
from redrive.storage.port import Transaction
from redrive.storage.postgres import PostgresEngine
from redrive.storage.values import AuditRow, Claimed, DeadFilter, Queue

SECONDS = 20.0
Nodes = tuple[PostgresEngine, PostgresEngine]


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


def create(
    queue: str, kind: Any = "standard", dead_letter: str | None = None, **settings: object
) -> c.CreateQueue:
    """A queue with these settings."""
    return c.CreateQueue(queue, kind, dead_letter, settings)


def head_ends(engine: PostgresEngine, message: Claimed) -> int:
    """When the lease of this message ends."""
    found = engine.read(lambda reader: reader.message(message.message_id))
    assert found is not None
    return found.facts.lease_until_ms


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


@pytest.mark.parametrize("judged_first", [True, False])
def test_a_failure_is_judged_by_the_policy_that_was_there_first(
    nodes: Nodes, postgres_url: str, judged_first: bool
) -> None:
    """A nack that comes while another node sets a policy waits for it; one that came before is not judged."""
    one, other = nodes
    batch(one, create("jobs"), c.Publish("jobs", [c.Entry(b"1")]))
    [message] = lease(one)
    cause = fingerprint("max_attempts", "")  # of a nack without an error
    policy, nack = set_policy("jobs", cause, "hold"), c.Nack(message.message_id, message.handle)
    first, second = ([policy], [nack]) if judged_first else ([nack], [policy])
    answers = [answer for [answer] in crossed(postgres_url, one, first, other, second)]
    [settled] = [answer for answer in answers if isinstance(answer, c.Settled)]
    assert settled.state == ("dead" if judged_first else "delayed")


def test_two_nodes_do_not_pass_the_limit_of_policies(nodes: Nodes, postgres_url: str) -> None:
    """The last place is given once."""
    one, other = nodes
    room = limits.FINGERPRINT_POLICIES_MAX
    batch(one, create("jobs"))
    batch(one, *(set_policy("jobs", f"{n:016x}", "hold") for n in range(room - 1)))
    last, beyond = (set_policy("jobs", letter * 16, "hold") for letter in "ab")
    [first], [second] = crossed(postgres_url, one, [last], other, [beyond])
    assert not isinstance(first, Exception)
    assert isinstance(second, LimitExceeded)


@pytest.mark.parametrize("room", [(5, None), (None, 5)])
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
    nodes: Nodes, postgres_url: str, command: c.Command, room: tuple[int | None, int | None]
) -> None:
    """A queue that gets or loses its limit while its row is waited for is not taken for missing."""
    one, other = nodes
    batch(one, create("jobs"))
    batch(one, update("jobs", max_in_flight=room[0]))
    _, [answer] = crossed(postgres_url, one, [update("jobs", max_in_flight=room[1])], other, [command])
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


@pytest.mark.parametrize("stop", ["queues_by_id", "write_groups"])
def test_an_update_and_a_settle_beside_a_settle_of_the_same_group(
    nodes: Nodes, postgres_url: str, stop: str
) -> None:
    """Queues are locked before groups, also by a batch that learns of them from its messages."""
    one, other = nodes
    batch(one, create("jobs", "fifo"), publish("jobs", "a"))
    [head] = lease(one)
    extend = c.Extend(head.message_id, head.handle, visibility_ms=90_000)
    nack = c.Nack(head.message_id, head.handle, delay_ms=0)
    _, [updated, answer] = crossed(
        postgres_url, one, [nack], other, [update("jobs", max_retries=3), extend], stop
    )
    assert deadlocks(nodes, postgres_url) == 0
    assert updated.policy.max_retries == 3
    assert isinstance(answer, StaleReceipt)


def test_an_update_of_the_dead_letter_queue_beside_a_death(nodes: Nodes, postgres_url: str) -> None:
    """The queue that a dead letter goes to is locked before the groups too."""
    one, other = nodes
    batch(one, create("jobs", "fifo", fifo_on_dead="continue"), publish("jobs", "a", "a"))
    [first] = lease(one)
    batch(one, c.Reject(first.message_id, first.handle))
    [dead], [second] = lease(one, "jobs.dlq"), lease(one)
    ours = [c.Reject(second.message_id, second.handle)]
    theirs = [update("jobs.dlq", max_retries=3), c.Nack(dead.message_id, dead.handle)]
    [buried], [_, back] = crossed(postgres_url, one, ours, other, theirs, "queues")
    assert deadlocks(nodes, postgres_url) == 0
    assert (buried.state, back.state) == ("dead", "dead")


def test_leases_end_beside_an_update_and_a_settle(nodes: Nodes, postgres_url: str) -> None:
    """The reaper and retention lock in the same order."""
    one, other = nodes
    batch(one, create("jobs", "fifo"), publish("jobs", "a"))
    [head] = batch(one, c.Lease("jobs", 1, 1))[0].messages
    ack = c.Ack([(head.message_id, head.handle)])
    wait_for(lambda: one.read(lambda reader: reader.now_ms) > head_ends(one, head), SECONDS, "its end")
    crossed(postgres_url, one, [c.Expire()], other, [update("jobs", max_retries=3), ack], "queues_by_id")
    assert deadlocks(nodes, postgres_url) == 0


def test_plain_messages_beside_those_of_a_group(nodes: Nodes, postgres_url: str) -> None:
    """The queues of all messages of a batch are locked before any group."""
    one, other = nodes
    batch(
        one,
        create("jobs", "fifo"),
        publish("jobs", "a"),
        create("plain"),
        c.Publish("plain", [c.Entry(b"1")]),
    )
    [head], [single] = lease(one), lease(one, "plain")
    nacks = [c.Nack(m.message_id, m.handle, delay_ms=0) for m in (head, single)]
    extend = c.Extend(head.message_id, head.handle, visibility_ms=90_000)
    crossed(postgres_url, one, nacks, other, [update("plain", max_retries=3), extend], "queues_by_id")
    assert deadlocks(nodes, postgres_url) == 0


def test_a_queue_met_later_is_not_waited_for(nodes: Nodes, postgres_url: str) -> None:
    """A batch that holds the queue that it names runs again when its messages' queue is held alone."""
    one, other = nodes
    batch(one, create("jobs"), create("more"), c.Publish("jobs", [c.Entry(b"1")]))
    [message] = lease(one)
    ours = [
        c.Publish("more", [c.Entry(b"1")]),
        c.Extend(message.message_id, message.handle, visibility_ms=9_000),
    ]
    theirs = [update("jobs", max_retries=3), update("more", max_retries=3)]
    [_, extended], _ = crossed(postgres_url, one, ours, other, theirs, "queues_by_id")
    assert deadlocks(nodes, postgres_url) == 0
    assert extended.state == "leased"


def test_queues_are_locked_in_one_order(nodes: Nodes, postgres_url: str) -> None:
    """Those with a limit first, also by a batch that learns of its queues from its messages."""
    one, other = nodes
    batch(one, create("free"), create("limited", max_in_flight=9))
    messages = []
    for queue in ("free", "limited"):
        batch(one, c.Publish(queue, [c.Entry(b"1")]))
        messages += lease(one, queue)
    extends = [c.Extend(m.message_id, m.handle, visibility_ms=90_000) for m in messages]
    changes = [update("free", max_retries=3), update("limited", max_retries=3)]
    works = [
        threading.Thread(target=batch, args=(other, *changes)),
        threading.Thread(target=batch, args=(one, *extends)),
    ]
    waits = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with (
        psycopg.connect(postgres_url, autocommit=True) as admin,
        psycopg.connect(postgres_url) as third,
    ):
        third.execute("SELECT 1 FROM redrive.queues WHERE name = 'limited' FOR UPDATE")
        for waiting, work in enumerate(works, start=1):
            work.start()
            wait_for(
                lambda waiting=waiting: admin.execute(waits.encode()).fetchone() == (waiting,),
                SECONDS,
                "a node to wait",
            )
        third.commit()
        for work in works:
            work.join(SECONDS)
            assert not work.is_alive()
    assert deadlocks(nodes, postgres_url) == 0


def test_a_create_beside_a_change_of_the_same_queue(nodes: Nodes, postgres_url: str) -> None:
    """What a create looks at is locked with the first locks of its batch."""
    one, other = nodes
    batch(one, create("jobs", "fifo"), publish("jobs", "a"), create("more"))
    [head] = lease(one)
    nack = c.Nack(head.message_id, head.handle, delay_ms=0)
    extend = c.Extend(head.message_id, head.handle, visibility_ms=90_000)
    crossed(
        postgres_url,
        one,
        [nack, create("new", dead_letter="more")],
        other,
        [update("more", max_retries=3), extend],
        "write_groups",
    )
    assert deadlocks(nodes, postgres_url) == 0


def test_two_nodes_create_over_the_same_implicit_queue(nodes: Nodes, postgres_url: str) -> None:
    """Nobody who has read the implicit queue raises a shared lock."""
    one, other = nodes
    batch(one, c.Publish("jobs", [c.Entry(b"1")]))
    again = create("jobs", max_retries=3)
    [first], [second] = crossed(postgres_url, one, [again], other, [again], "update_queue")
    assert deadlocks(nodes, postgres_url) == 0
    assert (first.queue.policy, second.queue.policy) == (first.queue.policy,) * 2


def test_two_first_messages_decide_once(nodes: Nodes, postgres_url: str) -> None:
    """Of two nodes that publish first into what a consume has made, the later goes by the first one's."""
    one, other = nodes
    assert lease(one) == []
    plain = c.Publish("jobs", [c.Entry(b"1")])
    [[first]], [[second]] = crossed(postgres_url, one, [publish("jobs", "a")], other, [plain])
    assert [m.message_id for m in lease(one)] == [first.message_id, second.message_id]
    assert [m.group_key for m in batch(one, publish("jobs", "b")) and lease(one)] == ["b"]


def test_a_redrive_is_repeated_rather_than_waits_with_groups(nodes: Nodes, postgres_url: str) -> None:
    """A queue that a late phase meets, and that another node holds alone, is not waited for."""
    one, other = nodes
    batch(
        one, create("jobs", "fifo"), publish("jobs", "a"), create("more"), c.Publish("more", [c.Entry(b"1")])
    )
    [head], [single] = lease(one), lease(one, "more")
    batch(one, c.Reject(single.message_id, single.handle))
    extend = c.Extend(head.message_id, head.handle, visibility_ms=90_000)
    [_, redriven], _ = crossed(
        postgres_url,
        one,
        [extend, redrive(DeadFilter(queue="more"), 9)],
        other,
        [update("more", max_retries=3), extend],
        "insert_plan",
    )
    assert deadlocks(nodes, postgres_url) == 0
    assert redriven.accepted == 1


def test_a_redrive_does_not_wait_for_leases(nodes: Nodes, postgres_url: str) -> None:
    """A redrive into a queue with a limit goes beside a lease from it."""
    one, other = nodes
    batch(one, create("jobs", "fifo", max_in_flight=9), create("more", "fifo"))
    batch(one, publish("jobs", "a", "b"), publish("more", "a"))
    [dead], [held] = lease(one, count=1), lease(one, "more")
    batch(one, c.Reject(dead.message_id, dead.handle))
    extend = c.Extend(held.message_id, held.handle, visibility_ms=9_000)
    ours = [extend, redrive(DeadFilter(queue="jobs"), 9, explicit=False)]
    [_, redriven], _ = crossed(postgres_url, one, ours, other, [extend, c.Lease("jobs", 1)], "insert_plan")
    assert deadlocks(nodes, postgres_url) == 0
    assert redriven.accepted == 1


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
