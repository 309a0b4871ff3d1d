"""Long polls behind long polls: an idle fleet asks the store a little, and misses nothing."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.domain import limits
from redrive.domain.errors import QueueNotFound
from redrive.service import parking
from redrive.service.committer import Committer
from redrive.service.duties import SLICE
from redrive.service.service import Service
from redrive.storage import commands as c
from redrive.storage.execute import Outcome
from redrive.storage.memory import MemoryEngine
from redrive.storage.port import Transaction
from tests.database import wait_for
from tests.service.conftest import GatedEngine, Replies, publish


def poll(queue: str = "jobs", consumer_id: str | None = None, **fields: Any) -> c.Lease:
    """A lease of one message that waits."""
    return c.Lease(queue, 1, None, consumer_id, wait_seconds=30, **fields)


@pytest.fixture
def runs(engine: GatedEngine) -> list[Transaction]:
    """Every transaction of the store from now on."""
    seen: list[Transaction] = []
    engine.fault = seen.append
    return seen


def _first_waits(committer: Committer, replies: Replies) -> None:
    committer.submit(poll(consumer_id="first"), replies.to("first"))
    wait_for(lambda: committer.waiting_for() == ["jobs"], 10, "the first to wait")


@pytest.mark.parametrize(("look_seconds", "looks"), [(parking.LOOK_SECONDS, 0), (0.0, 5)])
def test_who_comes_while_others_wait_does_not_look(
    committer: Committer,
    replies: Replies,
    runs: list[Transaction],
    monkeypatch: pytest.MonkeyPatch,
    look_seconds: float,
    looks: int,
) -> None:
    """Five more polls cost no transaction. The control: without the time for which a look counts each has
    its own."""
    _first_waits(committer, replies)
    before = len(runs)
    monkeypatch.setattr(parking, "LOOK_SECONDS", look_seconds)
    for number in range(5):
        committer.submit(poll(), replies.to(str(number)))
        if looks:
            wait_for(lambda n=number: len(runs) == before + n + 1, 10, "a look")
    committer.call(publish("another"))
    assert len(runs) - before == looks + 1  # the publish is one


def test_those_who_did_not_look_are_fed_in_their_order(
    committer: Committer, replies: Replies, runs: list[Transaction]
) -> None:
    """A burst feeds as many as it has messages; a later one the rest."""
    _first_waits(committer, replies)
    for number in range(5):
        committer.submit(poll(), replies.to(str(number)))
    committer.call(publish(count=4))
    replies.wait("first", "0", "1", "2")
    assert replies.order[:4] == ["first", "0", "1", "2"]
    committer.call(publish(count=2))
    results = replies.wait("first", *map(str, range(5)))
    assert [len(result.messages) for result in results] == [1] * 6


def test_who_did_not_look_is_counted_as_a_consumer(engine: GatedEngine, replies: Replies) -> None:
    """With the next look of anybody, so that an idle fleet is seen as large as it is."""
    consumers: set[str] = set()

    def after(outcome: Outcome) -> None:
        for delta in outcome.stats.values():
            consumers.update(delta.slots)

    running = Committer(engine, after)
    running.start()
    try:
        _first_waits(running, replies)
        for number in range(5):
            running.submit(poll(consumer_id=f"c{number}"), replies.to(str(number)))
        assert consumers == {"first"}
        running.wake(["jobs"])  # as the look-around for other nodes does
        wait_for(lambda: len(consumers) == 6, 10, "all six consumers")
    finally:
        running.stop()


def test_when_its_queue_is_deleted_everybody_who_waits_hears_of_it(
    committer: Committer, replies: Replies
) -> None:
    """Not only the one that looks next: each that is refused lets the next one look."""
    committer.call(c.CreateQueue("jobs", "standard", None, {}))
    names = [str(number) for number in range(5)]
    committer.submit(poll(auto_create=False), replies.to("first"))
    wait_for(lambda: committer.waiting_for() == ["jobs"], 10, "the first to wait")
    for name in names:
        committer.submit(poll(auto_create=False), replies.to(name))
    committer.call(c.SetQueueState("jobs", "deleting"))
    assert {type(result) for result in replies.wait("first", *names)} == {QueueNotFound}


def test_a_purge_lets_others_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes in small slices, each a batch of its own that publishes can share."""
    from redrive.contract import shapes
    from redrive.domain.errors import ConfirmationRequired

    service = Service(MemoryEngine())
    service.start()
    try:
        service.committer.call(publish(count=3 * SLICE + 1))
        with pytest.raises(ConfirmationRequired) as asked:
            service.call("queue.purge", shapes.QueuePurge(queue="jobs"))
        call, removed = service.committer.call, []

        def seen(command: c.Command, *rest: Any) -> object:
            result = call(command, *rest)
            if isinstance(result, c.Purged):
                removed.append(result.removed)
            return result

        monkeypatch.setattr(service.committer, "call", seen)
        token = (asked.value.details or {})["confirm"]
        service.call("queue.purge", shapes.QueuePurge(queue="jobs", confirm=token))
    finally:
        service.close()
    assert removed == [SLICE] * 3 + [1]
    assert SLICE <= 50


@pytest.mark.parametrize("step_ms", [3_600_000, 2_000])
def test_a_step_of_the_clock_wakes_who_waits(
    engine: GatedEngine, committer: Committer, replies: Replies, step_ms: int
) -> None:
    """What an hour's step makes due is there for the poll that waits. A step too small to be told from a slow
    machine (the control) wakes nobody: its alarm does."""
    committer.call(c.Publish("jobs", [c.Entry(b"{}", delay_ms=1_800_000)]))
    committer.call(c.Tick())
    _first_waits(committer, replies)
    before = engine.clock
    engine.clock = lambda: before() + step_ms
    committer.call(c.Tick())
    if step_ms > limits.OUTAGE_GAP_MS:
        [result] = replies.wait("first")
        assert len(result.messages) == 1
    else:
        assert committer.waiting_for() == ["jobs"]
