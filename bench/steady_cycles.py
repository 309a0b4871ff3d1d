"""Workloads at the engine: leases timed one by one in a steady cycle; nacks, acks, keyed publishes by rate.

The two sides take turns inside each pair, so that what disturbs the machine disturbs both.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence

from bench.steady_stores import ERROR, QUEUE, do, entries
from redrive.storage import commands as c
from redrive.storage.port import Engine

BATCH = 10  # messages of one timed lease
_TURN = 25  # samples of one side before the other has its turn
_TICK_SECONDS = 1.0
_VISIBILITY_MS = 600_000


def p99(samples: Sequence[float]) -> float:
    """The 99th percentile, in the unit of ``samples``."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


class Cycle:
    """Lease, acknowledge, publish as many again: the store stays as large as it is. Leases are timed."""

    def __init__(self, engine: Engine, batch: int = BATCH) -> None:
        self._engine, self._batch = engine, batch
        self._ticked = 0.0
        self.messages = 0
        self.seconds = 0.0

    def sample(self, count: int) -> list[float]:
        """Seconds of each of ``count`` leases."""
        return [self._once() for _ in range(count)]

    @property
    def churn(self) -> float:
        """Messages through this cycle a second of its own time."""
        return self.messages / self.seconds if self.seconds else 0.0

    def _once(self) -> float:
        began = time.perf_counter()
        [leased] = do(self._engine, c.Lease(QUEUE, self._batch, _VISIBILITY_MS, "steady"))
        took = time.perf_counter() - began
        count = len(leased.messages)
        assert count == self._batch, f"leased {count} of {self._batch}"
        self._settle(leased)
        self.messages += count
        self.seconds += time.perf_counter() - began
        return took

    def _settle(self, leased: c.Leased) -> None:
        """One transaction; once a second with the tick that a server writes."""
        by_group: dict[str | None, int] = {}
        for message in leased.messages:
            by_group[message.group_key] = by_group.get(message.group_key, 0) + 1
        again = [entry for group, n in by_group.items() for entry in entries(n, group=group)]
        commands: list[c.Command] = [
            c.Ack([(m.message_id, m.handle) for m in leased.messages]),
            c.Publish(QUEUE, again),
        ]
        if time.monotonic() - self._ticked >= _TICK_SECONDS:
            self._ticked = time.monotonic()
            commands.append(c.Tick())
        do(self._engine, *commands)


def churn(engine: Engine, messages: int, *, tick_every: int) -> float:
    """Put ``messages`` through the queue at full speed, a tick after each ``tick_every``; how many a second.

    What an old snapshot holds on to is what was churned and ticked since, not the time that passed.
    """
    began, done, ticked = time.perf_counter(), 0, 0
    while done < messages:
        [leased] = do(engine, c.Lease(QUEUE, 500, _VISIBILITY_MS, "churn"))
        assert leased.messages
        count = len(leased.messages)
        settle: list[c.Command] = [
            c.Ack([(m.message_id, m.handle) for m in leased.messages]),
            c.Publish(QUEUE, entries(count)),
        ]
        done += count
        if done // tick_every > ticked:
            ticked = done // tick_every
            settle.append(c.Tick())
        do(engine, *settle)
    return done / (time.perf_counter() - began)


def side_by_side(ours: Cycle, theirs: Cycle, pairs: int, samples: int) -> list[tuple[float, float]]:
    """The p99 of a lease in milliseconds on both sides, by pair."""
    ours.sample(_TURN), theirs.sample(_TURN)
    found = []
    for _ in range(pairs):
        mine: list[float] = []
        other: list[float] = []
        while len(mine) < samples:
            mine += ours.sample(_TURN)
            other += theirs.sample(_TURN)
        found.append((p99(mine) * 1000, p99(other) * 1000))
    return found


def settle_rates(engine: Engine, pairs: int, rounds: int) -> list[tuple[float, float]]:
    """Messages leased and settled a second, every one nacked and every one acked, by pair; batches of 100."""

    def nack(leased: c.Leased) -> list[c.Command]:
        return [c.Nack(m.message_id, m.handle, error=ERROR) for m in leased.messages]

    def ack(leased: c.Leased) -> list[c.Command]:
        return [c.Ack([(m.message_id, m.handle) for m in leased.messages])]

    def rate(settle: Callable[[c.Leased], list[c.Command]]) -> float:
        for _ in range(rounds):
            do(engine, c.Publish(QUEUE, entries(100)), c.Tick())
        began, done = time.perf_counter(), 0
        for _ in range(rounds):
            [leased] = do(engine, c.Lease(QUEUE, 100, _VISIBILITY_MS, "steady"))
            do(engine, *settle(leased))
            done += len(leased.messages)
        return done / (time.perf_counter() - began)

    rate(nack), rate(ack)
    return [(rate(nack), rate(ack)) for _ in range(pairs)]


def keyed_rates(ours: Engine, theirs: Engine, pairs: int, rounds: int) -> list[tuple[float, float]]:
    """Keyed publishes a second into two stores, by pair; batches of 100, each message with its own key."""
    numbers = itertools.count()

    def rate(engine: Engine) -> float:
        began = time.perf_counter()
        for _ in range(rounds):
            keyed = [
                c.Entry(entry.body, idempotent=c.Idempotent("publish", f"order-{next(numbers)}", b"12345678"))
                for entry in entries(100)
            ]
            do(engine, c.Publish(QUEUE, list(keyed)))
        return rounds * 100 / (time.perf_counter() - began)

    rate(ours), rate(theirs)
    return [(rate(ours), rate(theirs)) for _ in range(pairs)]


def medians(found: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The median of each side."""
    return statistics.median(a for a, _ in found), statistics.median(b for _, b in found)
