"""What goes out with BEGIN: fewer round trips, and the same outcome when an outage is to be taken out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.execute.batch import Outcome
from redrive.storage.port import Transaction
from redrive.storage.postgres import PostgresEngine
from redrive.storage.postgres.session import Session
from redrive.storage.values import Claimed

START_MS = 1_800_000_000_000
GAP_MS = 60_000


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    """The node's time."""
    return Clock()


@pytest.fixture
def node(postgres_url: str, clock: Clock) -> Iterator[PostgresEngine]:
    """One engine."""
    engine = PostgresEngine(postgres_url, clock)
    yield engine
    engine.close()


def batch(engine: PostgresEngine, *commands: c.Command) -> Outcome:
    """Apply commands as one batch."""
    return engine.run(lambda tx: apply(tx, commands))


def leased(engine: PostgresEngine, count: int) -> list[Claimed]:
    """Publish and lease as many messages."""
    batch(engine, c.Publish("jobs", [c.Entry(b"{}")] * count))
    [answer] = batch(engine, c.Lease("jobs", count, 30_000)).results
    messages: list[Claimed] = answer.messages  # type: ignore[attr-defined]
    assert len(messages) == count
    return messages


def handle_of(message: Claimed) -> tuple[str, str]:
    """What an ack names."""
    return message.message_id, message.handle


def test_round_trips(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A publish and an ack take two (all that is asked, and COMMIT), a lease three."""
    trips: list[str] = []

    def counted(name: str) -> Any:
        real = getattr(Session, name)

        def count(*args: Any, **kwargs: Any) -> Any:
            trips.append(name)
            return real(*args, **kwargs)

        return count

    engine = PostgresEngine(postgres_url)
    try:
        batch(engine, c.Ack([handle_of(leased(engine, 1)[0])]))  # everything is prepared
        monkeypatch.setattr(Session, "_ask", staticmethod(counted("_ask")))
        monkeypatch.setattr(Session, "_exchange", counted("_exchange"))
        took = []
        batch(engine, c.Publish("jobs", [c.Entry(b"{}")]))
        took.append(len(trips))
        [answer] = batch(engine, c.Lease("jobs", 1, 30_000)).results
        took.append(len(trips) - sum(took))
        [message] = answer.messages  # type: ignore[attr-defined]
        batch(engine, c.Ack([handle_of(message)]))
        took.append(len(trips) - sum(took))
    finally:
        engine.close()
    assert took == [2, 3, 2]


def test_an_ack_after_an_outage_counts_once(node: PostgresEngine, clock: Clock) -> None:
    """The batch that finds the outage has sent its ack with BEGIN: it runs again, takes the outage out first,
    and answers as if nothing had been early."""
    acked, other = leased(node, 2)
    clock.now_ms += GAP_MS
    tries = []

    def work(tx: Transaction) -> Outcome:
        tries.append(1)
        return apply(tx, [c.Ack([handle_of(acked)])])

    outcome = node.run(work)
    assert outcome.outage_ms == GAP_MS
    assert outcome.results == [[True]]
    assert sum(delta.acked for delta in outcome.stats.values()) == 1
    assert len(tries) == 2, "the control: the first try had been too early"
    assert batch(node, c.Ack([handle_of(acked)])).results == [[False]]
    clock.now_ms += 4_000
    assert batch(node, c.Expire()).results == [0], "the other lease was shifted"
    assert batch(node, c.Ack([handle_of(other)])).results == [[True]]


def test_an_early_answer_that_nobody_takes_is_undone(node: PostgresEngine) -> None:
    """A batch that said it would ack, and did not, runs again without having acked."""
    [message] = leased(node, 1)
    node.run(lambda tx: tx.expect(["jobs"], "shared", [handle_of(message)]) or tx.write_tick(tx.now_ms))
    assert batch(node, c.Ack([handle_of(message)])).results == [[True]]


def test_handles_belong_to_their_messages(node: PostgresEngine) -> None:
    """Two messages acked with each other's handles stay, and so does what is no id at all."""
    one, other = leased(node, 2)
    swapped = [(one.message_id, other.handle), (other.message_id, one.handle)]
    [answers] = batch(node, c.Ack(swapped)).results
    assert True not in answers  # type: ignore[operator]
    both = f"{one.message_id},{other.message_id}"
    [answers] = batch(node, c.Ack([(both, one.handle), handle_of(one), handle_of(other)])).results
    assert answers == [False, True, True]
