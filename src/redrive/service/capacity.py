"""What is known of a queue's consumers, from the statistics: for estimates."""

from __future__ import annotations

import msgspec

from redrive.domain.estimate import Measured
from redrive.storage.execute.upkeep import STATS_SLOT_MS
from redrive.storage.port import Reader
from redrive.storage.values import StatsDelta

_SLOTS = 30  # five minutes
_MINUTE = 6


def measured(reader: Reader, name: str) -> Measured:
    """Of the queue of this name; of a dead-letter queue nothing is known."""
    queue = reader.queue(name)
    if queue is None:
        return Measured(None, 0.0, 0, 0.0)
    slot = reader.now_ms // STATS_SLOT_MS
    by_slot: dict[int, StatsDelta] = {}
    for at, raw in reader.stats(queue.id, slot - _SLOTS + 1):
        if at > slot - _SLOTS:
            by_slot.setdefault(at, StatsDelta()).add(msgspec.json.decode(raw, type=StatsDelta))
    total, minute = StatsDelta(), StatsDelta()
    for at, delta in by_slot.items():
        total.add(delta)
        if at > slot - _MINUTE:
            minute.add(delta)
    service = total.service_total_ms / total.acked / 1000 if total.acked else None
    # the slot under way counts for as much of it as has passed
    seconds = (_MINUTE - 1) * STATS_SLOT_MS / 1000 + max(1, reader.now_ms % STATS_SLOT_MS) / 1000
    peak = max((delta.acked for delta in by_slot.values()), default=0) * 1000 / STATS_SLOT_MS
    return Measured(
        service,
        minute.published / seconds,
        sum(minute.slots.values()),
        peak,
        queue.policy.max_in_flight,
        queue.policy.max_per_second,
    )
