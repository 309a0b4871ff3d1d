"""Acknowledgements: in batches, repeated while that can help, and never fatal."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import msgspec
import pytest
from tests.worker.memory_queue import MemoryQueue

from redrive import seams
from redrive.domain.errors import Overloaded, QueueNotFound, RedriveError, StaleReceipt
from redrive.transports import Delivery
from redrive.worker.holdings import Held, Holdings
from redrive.worker.settle import Settler


class Scripted(MemoryQueue):
    """Answers acks from a list; waits for ``go`` before the first answer."""

    def __init__(self, *answers: list[bool | RedriveError]) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[list[str]] = []
        self.first, self.go = threading.Event(), threading.Event()

    def ack(self, queue: str, items: Sequence[tuple[str, str]]) -> list[bool | RedriveError]:
        self.asked.append([message_id for message_id, _ in items])
        self.first.set()
        assert self.go.wait(10)
        return self.answers.pop(0)


def held(name: str) -> Held:
    """A lease of 30 s."""
    delivery = Delivery(name, f"{name}.1", msgspec.Raw(b"1"), name, 1, 1)
    return Held(delivery, sent_at=seams.monotonic(), lease_seconds=30)


@pytest.fixture
def stopped() -> Iterator[threading.Event]:
    """Ends the loop."""
    event = threading.Event()
    yield event
    event.set()


def settle(queue: Scripted, stopped: threading.Event, *names: str) -> Holdings:
    """Settle the first name, and the others while its answer is awaited."""
    holdings = Holdings(1, 0)
    settler = Settler(queue, "work", holdings, None, stopped)
    thread = threading.Thread(target=settler.loop)
    thread.start()
    settler.done(held(names[0]))
    assert queue.first.wait(10)
    for name in names[1:]:
        settler.done(held(name))
    queue.go.set()
    assert holdings.wait_empty(10)
    stopped.set()
    settler.wake()
    thread.join(10)
    assert not thread.is_alive()
    return holdings


def test_acks_gather_while_one_is_on_its_way(stopped: threading.Event) -> None:
    """A fast handler costs no call of its own: what ends meanwhile shares the next one."""
    queue = Scripted([True], [True, True, True])
    settle(queue, stopped, "a", "b", "c", "d")
    assert queue.asked == [["a"], ["b", "c", "d"]]


def test_what_was_refused_for_good_is_settled(stopped: threading.Event) -> None:
    """Gone, stale and not found end the matter; only what may succeed later is asked again."""
    queue = Scripted([True], [False, StaleReceipt("x"), QueueNotFound("x"), Overloaded("x")], [True])
    settle(queue, stopped, "a", "gone", "stale", "unknown", "busy")
    assert queue.asked[1:] == [["gone", "stale", "unknown", "busy"], ["busy"]]
