"""The service's own duties beside live traffic: bounded, and the liveness tick never waits for them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from redrive.service import duties
from redrive.service.batching import SLICE
from redrive.service.duties import Duties
from redrive.service.retention import Retention
from redrive.service.statistics import Statistics
from redrive.storage import commands as c


class Stand:
    """A store in which queues are being deleted, and a committer that gives answers; each takes a while."""

    def __init__(self, deleting: list[str], answer: Callable[[c.Command], object], seconds: float) -> None:
        self.deleting = deleting
        self.answer = answer
        self.seconds = seconds
        self.now = 0.0
        self.seen: list[c.Command] = []

    def call(self, command: c.Command) -> object:
        """As the committer's."""
        self.seen.append(command)
        self.now += self.seconds
        return self.answer(command)

    def read(self, work: Callable[[Any], Any]) -> Any:
        """As the engine's."""
        return work(SimpleNamespace(deleting=lambda limit: self.deleting[:limit]))

    def purges(self) -> list[str]:
        """The queues of the slices, in their order."""
        return [command.name for command in self.seen if isinstance(command, c.Purge)]


def stand(
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[c.Command], object],
    deleting: list[str],
    seconds: float = 0.01,
) -> tuple[Duties, Stand]:
    """Duties over a stand, whose time goes on only while it answers."""
    made = Stand(deleting, answer, seconds)
    monkeypatch.setattr(
        duties,
        "seams",
        SimpleNamespace(monotonic=lambda: made.now, wall_ms=lambda: int(made.now * 1000)),
    )
    store: Any = made
    access: Any = SimpleNamespace(reload=None)
    return Duties(store, store, Statistics("node"), access, Retention(store, None, 0), shared=False), made


def test_what_another_node_holds_is_left_for_the_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first slice that removes nothing is a queue's last in this turn; the next queue has its own."""
    left = {"held": [0] * 9, "free": [SLICE, 0, 7]}

    def answer(command: c.Command) -> object:
        assert isinstance(command, c.Purge)
        rest = left[command.name]
        return c.Purged(rest.pop(0), more=bool(rest))

    made, store = stand(monkeypatch, answer, ["held", "free"])
    made.finish_deletes()
    assert store.purges() == ["held", "free", "free"]
    made.finish_deletes()
    assert store.purges() == ["held", "free", "free", "held", "free"]


def test_a_turn_has_an_end_however_many_queues_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other duties, and the live traffic's batches without a slice in them, get their turn."""
    made, store = stand(monkeypatch, lambda _: c.Purged(SLICE, more=True), [f"q{n}" for n in range(100)])
    made.finish_deletes()
    assert len(store.purges()) == duties._SLICES_MAX


@pytest.mark.parametrize("duty", ["finish_deletes", "reap", "age", "prune"])
def test_the_tick_has_its_turn_between_slices(monkeypatch: pytest.MonkeyPatch, duty: str) -> None:
    """A duty with much to do is no outage. The control: without a turn of its own there is no tick at all."""

    def answer(command: c.Command) -> object:
        return c.Purged(SLICE, more=True) if isinstance(command, c.Purge) else SLICE

    made, store = stand(monkeypatch, answer, ["big"], seconds=0.4)
    getattr(made, duty)()
    at = [n for n, command in enumerate(store.seen) if isinstance(command, c.Tick)]
    gaps = [(later - sooner) * store.seconds for sooner, later in zip([0, *at], at, strict=False)]
    assert len(gaps) > 10
    assert max(gaps) < 2.5
    monkeypatch.setattr(duties, "_TICK_SECONDS", 1e9)
    made, store = stand(monkeypatch, answer, ["big"], seconds=0.4)
    getattr(made, duty)()
    assert not any(isinstance(command, c.Tick) for command in store.seen)
