"""A running service over memory, with the parts that tests look at."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from redrive.service import Service
from redrive.service.committer import Committer
from redrive.storage import commands as c
from redrive.storage.memory import MemoryEngine
from redrive.storage.port import Transaction


class GatedEngine(MemoryEngine):
    """A real engine whose transactions wait at a gate, so that a test decides what shares a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.batches: list[int] = []
        self.fault: Callable[[Transaction], None] | None = None

    def run(self, work: Callable[[Transaction], Any]) -> Any:
        self.entered.set()
        assert self.gate.wait(10)

        def counted(tx: Transaction) -> Any:
            if self.fault is not None:
                self.fault(tx)
            return work(tx)

        return super().run(counted)


class Replies:
    """Collects replies, and waits for them."""

    def __init__(self) -> None:
        self.results: dict[str, object] = {}
        self.order: list[str] = []
        self._changed = threading.Condition()

    def to(self, name: str) -> Callable[[object], None]:
        """A reply that is kept under ``name``."""

        def reply(result: object) -> None:
            with self._changed:
                self.results[name] = result
                self.order.append(name)
                self._changed.notify_all()

        return reply

    def wait(self, *names: str, seconds: float = 10) -> list[Any]:
        """The results of these names, when all are there."""
        with self._changed:
            assert self._changed.wait_for(lambda: all(name in self.results for name in names), seconds)
            return [self.results[name] for name in names]


@pytest.fixture
def engine() -> GatedEngine:
    """A store in memory behind a gate."""
    return GatedEngine()


@pytest.fixture
def replies() -> Replies:
    """Where replies go."""
    return Replies()


@pytest.fixture
def committer(engine: GatedEngine) -> Iterator[Committer]:
    """A running committer."""
    running = Committer(engine)
    running.start()
    yield running
    engine.gate.set()
    running.stop()


@pytest.fixture
def service() -> Iterator[Service]:
    """A running service in memory."""
    made = Service(MemoryEngine())
    made.start()
    yield made
    made.close()


def publish(queue: str = "jobs", count: int = 1, body: bytes = b"{}") -> c.Publish:
    """A publish of ``count`` entries."""
    return c.Publish(queue, [c.Entry(body) for _ in range(count)])


def hold(engine: GatedEngine, committer: Committer, replies: Replies) -> None:
    """Keep the committer inside a batch, so that what is submitted next shares one."""
    engine.gate.clear()
    engine.entered.clear()
    committer.submit(c.Tick(), replies.to("held"))
    assert engine.entered.wait(10)
