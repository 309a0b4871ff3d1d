"""What happened, counted per queue, node and 10-second slot, off the writer's path.

Every batch adds to this node's numbers in memory; the liveness tick writes what changed, at most a second
later. No row is written by two nodes. A crash loses at most the last second of statistics, never a message.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import msgspec

from redrive.domain import histogram
from redrive.storage.execute.upkeep import STATS_SLOT_MS
from redrive.storage.port import Reader
from redrive.storage.values import Queue, QueueCounts, StatsDelta

TOTALS_SLOT = 0
_SLOTS_HELD = 2


class Statistics:
    """This node's counters, and the sums over all nodes."""

    def __init__(self, node: str) -> None:
        self.node = node
        self._lock = threading.Lock()
        self._slots: dict[tuple[int, int], StatsDelta] = {}
        self._changed: set[tuple[int, int]] = set()

    def count(self, deltas: dict[int, StatsDelta], now_ms: int) -> None:
        """Add what a batch did."""
        slot = now_ms // STATS_SLOT_MS
        with self._lock:
            for queue_id, delta in deltas.items():
                for key in ((queue_id, slot), (queue_id, TOTALS_SLOT)):
                    self._slots.setdefault(key, StatsDelta()).add(delta)
                    self._changed.add(key)

    def changes(self, now_ms: int) -> dict[tuple[int, int], bytes]:
        """What was counted since the last call, for the tick to write; slots that are over are forgotten."""
        with self._lock:
            rows = {}
            for key in self._changed:
                delta = self._slots[key]
                if key[1] == TOTALS_SLOT:  # totals need no detail
                    delta = msgspec.structs.replace(delta, attempts_settled={}, service_ms={}, slots={})
                rows[key] = msgspec.json.encode(delta)
            self._changed.clear()
            floor = now_ms // STATS_SLOT_MS - _SLOTS_HELD
            for key in [k for k in self._slots if TOTALS_SLOT < k[1] < floor]:
                del self._slots[key]
            return rows


class QueueStatistics(msgspec.Struct):
    """The numbers of contract section 6 for one queue. Ages in seconds, service times in milliseconds."""

    counts: QueueCounts
    totals: StatsDelta
    attempts_settled: dict[int, int]
    service_ms: dict[int, int]
    consumers: int
    arrivals_per_minute: float
    dead_per_minute: float
    oldest_ready_age_seconds: float
    oldest_dead_age_seconds: float


def gather(reader: Reader, queue: Queue) -> QueueStatistics:
    """Sum what every node wrote: totals, the last hour, five minutes and one minute."""
    slot = reader.now_ms // STATS_SLOT_MS
    rows = [(at, msgspec.json.decode(raw, type=StatsDelta)) for at, raw in reader.stats(queue.id, slot - 360)]
    totals = _sum(delta for at, delta in rows if at == TOTALS_SLOT)
    hour = _sum(delta for at, delta in rows if at > TOTALS_SLOT)
    recent = _sum(delta for at, delta in rows if at > slot - 30)
    minute = _sum(delta for at, delta in rows if at > max(TOTALS_SLOT, slot - 6))
    counts = reader.counts(queue)
    return QueueStatistics(
        counts=counts,
        totals=totals,
        attempts_settled=hour.attempts_settled,
        service_ms=recent.service_ms,
        consumers=len(minute.slots),
        arrivals_per_minute=float(minute.published),
        dead_per_minute=float(minute.dead),
        oldest_ready_age_seconds=_age(reader.now_ms, counts.oldest_ready_ms),
        oldest_dead_age_seconds=_age(reader.now_ms, counts.oldest_dead_ms),
    )


def percentiles(service_ms: dict[int, int]) -> tuple[float | None, float | None, float | None]:
    """p50, p95 and p99 in milliseconds."""
    p50, p95, p99 = (histogram.percentile(service_ms, share) for share in (0.5, 0.95, 0.99))
    return p50, p95, p99


def _sum(deltas: Iterable[StatsDelta]) -> StatsDelta:
    total = StatsDelta()
    for delta in deltas:
        total.add(delta)
    return total


def _age(now_ms: int, since_ms: int | None) -> float:
    return 0.0 if since_ms is None else max(0, now_ms - since_ms) / 1000
