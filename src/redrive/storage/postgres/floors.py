"""Where to begin to look in an index: what lies below was taken already.

An old snapshot (a long report, a forgotten session, a backup) keeps every index entry of what was taken
since, and a search that begins at the lowest entry walks over all of them. So a node remembers, by queue and
level, the due time of the first row of its last claim. What another node commits late below that is found by
looking from the bottom again every few seconds.

The heads of FIFO groups have a floor too. A head may be due long since when its predecessor is settled, so
another node's may come in far below it: when nothing is due above the floor, the claim looks from the bottom.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

TRAIL_MS = 2_000  # a transaction of another node that began before our last claim may take so long to commit
SWEEP_SECONDS = 5.0
# the floors of the reaper and of retention, on the live side and the dead one, which go over all queues
LEASES, AGED, AGED_DEAD = (-1, 0), (-1, 1), (-1, 2)
HEADS = -1  # in the place of a priority: the heads of a queue's groups
Key = tuple[int, int]


class Floors:
    """One node's floors, in the engine's milliseconds; by (queue id, priority), and a few more keys."""

    def __init__(self) -> None:
        self._at: dict[Key, int] = {}
        self._now_ms = 0
        self._sweep_at = 0.0

    def begin(self, now_ms: int, monotonic: float) -> None:
        """A transaction begins: from the bottom, when it is time again or when the clock was set back."""
        if monotonic >= self._sweep_at or now_ms < self._now_ms:
            self.forget()
            self._sweep_at = monotonic + SWEEP_SECONDS
        self._now_ms = now_ms

    @contextlib.contextmanager
    def undone_with_us(self) -> Iterator[None]:
        """What a transaction took that does not get through lies below again."""
        try:
            yield
        except BaseException:
            self.forget()
            raise

    def forget(self) -> None:
        """Look from the bottom at the next opportunity."""
        self._at.clear()

    def of(self, key: Key) -> int:
        """Nothing of ours lies below."""
        return self._at.get(key, 0)

    def reached(self, key: Key, due_ms: int) -> None:
        """The first row found there was due then (or: there was none, and it is then)."""
        self._at[key] = due_ms - TRAIL_MS

    def put(self, key: Key, due_ms: int) -> None:
        """This node puts something there."""
        if due_ms < self._at.get(key, 0):
            self._at[key] = due_ms
