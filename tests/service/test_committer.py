"""The group committer: one commit for all who wait, refusals for one, no answer before it is durable."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from redrive.domain.errors import (
    Internal,
    MessageNotFound,
    OutcomeUnknown,
    Overloaded,
    ReadOnly,
    StorageFull,
)
from redrive.service import batching
from redrive.service.committer import Committer
from redrive.storage import commands as c
from redrive.storage.port import Damaged, DiskFull, Locked, Lost, Transaction, UnknownOutcome, Unwritable
from redrive.storage.sqlite import SqliteEngine
from tests.service.conftest import GatedEngine, Replies, hold, publish


def test_waiting_commands_share_a_commit(engine: GatedEngine, committer: Committer, replies: Replies) -> None:
    """What waits while a commit runs becomes one transaction."""
    hold(engine, committer, replies)
    runs: list[Transaction] = []
    engine.fault = runs.append
    for number in range(20):
        committer.submit(publish(), replies.to(str(number)))
    engine.gate.set()
    replies.wait(*map(str, range(20)))
    assert len(runs) == 2  # the held one, and one for all


def test_a_long_read_gives_way_to_a_commit_but_not_for_ever(
    engine: GatedEngine, committer: Committer, replies: Replies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its pages it waits for the commit that is under way, for a few milliseconds at most."""
    hold(engine, committer, replies)
    committer.give_way()  # ends by itself: the commit is still held
    monkeypatch.setattr("redrive.service.committer._GIVE_WAY_SECONDS", 30.0)
    order: list[str] = []
    reader = threading.Thread(target=lambda: (committer.give_way(), order.append("read")))  # type: ignore[func-returns-value]
    committer.submit(publish(), lambda _: order.append("commit"))
    reader.start()
    assert order == []
    engine.gate.set()
    reader.join(30)
    committer.call(c.Tick())
    assert sorted(order) == ["commit", "read"]
    committer.give_way()  # at rest: at once


def test_what_is_handed_over_together_shares_a_commit(
    engine: GatedEngine, committer: Committer, replies: Replies
) -> None:
    """An idle committer does not begin with the first of them; each has its own answer."""
    committer.call(c.Tick())
    runs: list[Transaction] = []
    engine.fault = runs.append
    names = [str(number) for number in range(20)]
    committer.submit_all(
        [*((publish(), replies.to(name)) for name in names), (c.Nack("0" * 36, "handle"), replies.to("bad"))]
    )
    assert all(isinstance(result, list) for result in replies.wait(*names))
    assert isinstance(replies.wait("bad")[0], MessageNotFound)
    assert len(runs) == 1


def test_one_too_many_of_those_handed_over_is_refused_alone(
    engine: GatedEngine, committer: Committer, replies: Replies
) -> None:
    """The bound holds within one hand-over; who came before it and settles behind it go on."""
    hold(engine, committer, replies)
    accepted = int(batching.PENDING_COST_MAX // publish(count=100).cost)
    asked: list[tuple[c.Command, Callable[[object], None]]] = [
        (publish(count=100), replies.to(f"p{number}")) for number in range(accepted)
    ]
    asked.append((publish(count=100), replies.to("one too many")))
    asked.append((c.Tick(), replies.to("tick")))
    committer.submit_all(asked)
    refusal = replies.wait("one too many")[0]
    assert isinstance(refusal, Overloaded)
    assert refusal.retry_after == 1
    assert "tick" not in replies.results
    engine.gate.set()
    replies.wait("tick")
    assert all(isinstance(result, list) for result in replies.wait("p0", f"p{accepted - 1}"))


def test_a_refusal_is_for_one(engine: GatedEngine, committer: Committer, replies: Replies) -> None:
    """A refused command does not disturb its batch."""
    hold(engine, committer, replies)
    committer.submit(publish(), replies.to("good"))
    committer.submit(c.Nack("0" * 36, "handle"), replies.to("bad"))
    engine.gate.set()
    good, bad = replies.wait("good", "bad")
    assert isinstance(good, list)
    assert isinstance(bad, MessageNotFound)


def test_the_guilty_command_is_found_by_halving(
    engine: GatedEngine, committer: Committer, replies: Replies
) -> None:
    """An engine error is halved down to the command that causes it; the others are committed."""

    hold(engine, committer, replies)
    names = [str(number) for number in range(9)]
    for number, name in enumerate(names):
        entries: Any = [c.Entry(b"{}")] if number != 5 else [c.Entry("not bytes")]  # type: ignore[arg-type]
        committer.submit(c.Publish("jobs", entries), replies.to(name))
    engine.gate.set()
    results = replies.wait(*names)
    assert [isinstance(result, Internal) for result in results] == [n == 5 for n in range(9)]
    leased = committer.call(c.Lease("jobs", 100))
    assert isinstance(leased, c.Leased)
    assert len(leased.messages) == 8


@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        (Lost("connection"), Overloaded),
        (Unwritable("a standby"), ReadOnly),
        (DiskFull("no room"), StorageFull),
        (UnknownOutcome("in COMMIT"), OutcomeUnknown),
    ],
)
def test_a_lost_commit_is_never_answered_as_done(
    engine: GatedEngine, committer: Committer, replies: Replies, failure: Lost, answer: type[Exception]
) -> None:
    """Disk, connection and commit errors fail the whole batch, once, without halving.

    On a full disk the lease that was held is tried once more, for it brings no new work.
    """
    runs = []

    def fail(_tx: Transaction) -> None:
        runs.append(1)
        raise failure

    hold(engine, committer, replies)
    engine.fault = fail
    for number in range(8):
        committer.submit(publish(), replies.to(str(number)))
    engine.gate.set()
    results = replies.wait(*map(str, range(8)))
    assert {type(result) for result in results} == {answer}
    assert len(runs) == 2 + isinstance(failure, DiskFull)
    assert committer.trouble() == str(failure)
    engine.fault = None
    assert committer.call(publish())
    assert committer.trouble() is None


def test_a_full_disk_refuses_new_work_only(
    engine: GatedEngine, committer: Committer, replies: Replies
) -> None:
    """A batch that finds no room is divided: what brings work is refused, what finishes it is tried again."""
    committer.call(publish())
    leased = committer.call(c.Lease("jobs", 1))
    assert isinstance(leased, c.Leased)
    [message] = leased.messages
    hold(engine, committer, replies)
    failures = [DiskFull("no room")]
    runs: list[Transaction] = []

    def fail_once(tx: Transaction) -> None:
        runs.append(tx)
        if len(runs) == 2:  # the held one went well
            raise failures.pop()

    engine.fault = fail_once
    committer.submit(publish(), replies.to("publish"))
    committer.submit(c.Ack([(message.message_id, message.handle)]), replies.to("ack"))
    engine.gate.set()
    refused, acked = replies.wait("publish", "ack")
    assert (type(refused), acked) == (StorageFull, [True])
    assert not failures


def test_while_the_store_is_full_new_work_is_not_tried(replies: Replies) -> None:
    """An engine that has given up its reserve is spared what it has no room for."""

    class FullEngine(GatedEngine):
        why: str | None = "the disk is full"

        def full(self) -> str | None:
            return self.why

    engine = FullEngine()
    runs: list[Transaction] = []
    engine.fault = runs.append
    committer = Committer(engine)
    committer.start()
    try:
        with pytest.raises(StorageFull, match="the disk is full"):
            committer.call(publish())
        assert runs == []
        assert committer.call(c.Ack([("0" * 36, "handle")])) == [False]
        engine.why = None
        assert committer.call(publish())
    finally:
        committer.stop()


def test_damaged_rows_are_refused_to_those_who_need_them(
    engine: GatedEngine, committer: Committer, replies: Replies
) -> None:
    """A batch with a command that meets a damaged row is halved: the others are committed."""
    hold(engine, committer, replies)
    original = engine.run

    def run(work: Any) -> Any:
        def watched(tx: Transaction) -> Any:
            queues = tx.queues

            def looked(names: Any, hold: Any = "shared") -> Any:
                if "damaged" in names:
                    raise Damaged("stored rows are damaged")
                return queues(names, hold)

            tx.queues = looked  # type: ignore[method-assign]
            return work(tx)

        return original(watched)

    engine.run = run  # type: ignore[method-assign]
    committer.submit(publish(), replies.to("good"))
    committer.submit(c.Publish("damaged", [c.Entry(b"{}")]), replies.to("bad"))
    engine.gate.set()
    good, bad = replies.wait("good", "bad")
    assert isinstance(good, list)
    assert isinstance(bad, ReadOnly)


def test_back_pressure(engine: GatedEngine, committer: Committer, replies: Replies) -> None:
    """Past the bound publishes are refused with Retry-After; settles and duties still come in."""
    hold(engine, committer, replies)
    accepted = int(batching.PENDING_COST_MAX // publish(count=100).cost)
    for number in range(accepted):
        committer.submit(publish(count=100), replies.to(f"p{number}"))
    with pytest.raises(Overloaded) as refusal:
        committer.submit(publish(count=100), replies.to("one too many"))
    assert refusal.value.retry_after == 1
    committer.submit(c.Ack([("0" * 36, "handle")]), replies.to("ack"))
    committer.submit(c.Tick(), replies.to("tick"))
    engine.gate.set()
    assert replies.wait("ack", "tick", f"p{accepted - 1}")[0] == [False]


def test_a_busy_queue_does_not_starve_another(
    engine: GatedEngine, committer: Committer, replies: Replies
) -> None:
    """Queues take turns by cost: a small queue's publish is not behind a flood."""
    hold(engine, committer, replies)
    for number in range(100):
        committer.submit(publish("flood", count=100), replies.to(f"f{number}"))
    committer.submit(publish("small"), replies.to("small"))
    engine.gate.set()
    replies.wait("small", "f99")
    assert replies.order.index("small") < 40


def test_a_long_poll_is_fed_by_the_publish(committer: Committer, replies: Replies) -> None:
    """A waiting lease gets the message of the transaction that stores it."""
    committer.submit(c.Lease("jobs", 5, wait_seconds=20), replies.to("waiting"))
    committer.call(c.Tick())
    assert committer.waiting_for() == ["jobs"]
    committer.call(publish())
    [leased] = replies.wait("waiting")
    assert len(leased.messages) == 1
    assert committer.waiting_for() == []


def test_a_burst_wakes_as_many_as_it_feeds(committer: Committer, replies: Replies) -> None:
    """Ten messages feed ten waiting consumers, one each."""
    names = [f"w{number}" for number in range(10)]
    for name in names:
        committer.submit(c.Lease("jobs", 1, wait_seconds=20), replies.to(name))
    committer.call(c.Tick())
    committer.call(publish(count=10))
    assert all(len(leased.messages) == 1 for leased in replies.wait(*names))


def test_a_long_poll_ends(committer: Committer, replies: Replies) -> None:
    """Who waited in vain gets an empty answer at the deadline."""
    committer.submit(c.Lease("jobs", 1, wait_seconds=0.05), replies.to("waiting"))
    [leased] = replies.wait("waiting")
    assert leased.messages == []


def test_a_delay_wakes_its_waiter(committer: Committer, replies: Replies) -> None:
    """A message that becomes due wakes a long poll without any other event."""
    committer.call(c.Publish("jobs", [c.Entry(b"{}", delay_ms=80)]))
    committer.submit(c.Lease("jobs", 1, wait_seconds=20), replies.to("waiting"))
    [leased] = replies.wait("waiting")
    assert len(leased.messages) == 1


def test_a_nack_wakes_a_waiter(committer: Committer, replies: Replies) -> None:
    """A message given back goes to who waits."""
    committer.call(publish())
    leased = committer.call(c.Lease("jobs", 1))
    assert isinstance(leased, c.Leased)
    [message] = leased.messages
    committer.submit(c.Lease("jobs", 1, wait_seconds=20), replies.to("waiting"))
    committer.call(c.Nack(message.message_id, message.handle, delay_ms=50))
    [again] = replies.wait("waiting")
    assert again.messages[0].message_id == message.message_id


def test_a_cancelled_poll_takes_nothing(committer: Committer, replies: Replies) -> None:
    """The client of a long poll went away: the next message is for somebody else."""
    ticket = committer.submit(c.Lease("jobs", 1, wait_seconds=20), replies.to("gone"))
    committer.call(c.Tick())
    ticket.cancel()
    committer.call(publish())
    leased = committer.call(c.Lease("jobs", 1))
    assert isinstance(leased, c.Leased)
    assert [message.attempt for message in leased.messages] == [1]


def test_a_lease_served_to_nobody_is_given_back(
    engine: GatedEngine, committer: Committer, replies: Replies
) -> None:
    """A lease that was cancelled while its commit ran is released, and spends no attempt."""
    committer.call(publish())
    engine.gate.clear()
    engine.entered.clear()
    ticket = committer.submit(c.Lease("jobs", 1), replies.to("gone"))
    assert engine.entered.wait(10)
    ticket.cancel()
    engine.gate.set()
    replies.wait("gone")
    leased = committer.call(c.Lease("jobs", 1, wait_seconds=10))
    assert isinstance(leased, c.Leased)
    assert [(m.attempt, m.delivery) for m in leased.messages] == [(1, 2)]


def test_stop_finishes_what_was_accepted(engine: GatedEngine, replies: Replies) -> None:
    """A graceful stop commits what waits, answers long polls with nothing, and refuses what comes later."""
    committer = Committer(engine)
    committer.start()
    committer.submit(c.Lease("other", 1, wait_seconds=20), replies.to("poll"))
    committer.call(c.Tick())
    hold(engine, committer, replies)
    committer.submit(publish(), replies.to("accepted"))
    stopper = threading.Thread(target=committer.stop)
    stopper.start()
    [poll] = replies.wait("poll")
    assert poll.messages == []
    with pytest.raises(Overloaded):
        committer.submit(publish(), replies.to("late"))
    engine.gate.set()
    [accepted] = replies.wait("accepted")
    assert len(accepted) == 1
    stopper.join(10)
    assert not stopper.is_alive()


def test_an_answer_comes_after_the_commit(tmp_path: Path) -> None:
    """What was answered is in the file for another reader at that moment."""
    store = SqliteEngine(tmp_path / "store.db")
    committer = Committer(store)
    committer.start()
    seen: list[bool] = []
    done = threading.Event()

    def reply(result: Any) -> None:
        message_id = result[0].message_id
        seen.append(store.read(lambda reader: reader.message(message_id)) is not None)
        done.set()

    committer.submit(publish(), reply)
    assert done.wait(10)
    assert seen == [True]
    committer.stop()
    store.close()


def test_a_message_that_another_node_holds_is_waited_for(engine: GatedEngine, committer: Committer) -> None:
    """A settle outlasts many batches that find its message held, and is carried out when it is let go."""
    committer.call(publish())
    leased = committer.call(c.Lease("jobs", 1))
    assert isinstance(leased, c.Leased)
    [message] = leased.messages
    held = iter(range(100))

    def hold_it(tx: Transaction) -> None:
        if next(held, None) is not None:
            tx.lock = lambda ids, _beside=(): Locked({}, frozenset(ids))  # type: ignore[method-assign]

    engine.fault = hold_it
    settled = committer.call(c.Nack(message.message_id, message.handle))
    assert isinstance(settled, c.Settled)
    assert next(held, None) is None
