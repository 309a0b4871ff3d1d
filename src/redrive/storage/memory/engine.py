"""The memory engine: one lock, one writer, readers under the same lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from redrive import seams
from redrive.storage.memory.reader import MemoryReader
from redrive.storage.memory.tables import Tables
from redrive.storage.memory.transaction import MemoryTransaction
from redrive.storage.port import Reader, Transaction

T = TypeVar("T")


class MemoryEngine:
    """Nothing survives the process. ``clock`` gives milliseconds since the epoch."""

    name = "memory"

    def __init__(self, clock: Callable[[], int] = seams.wall_ms) -> None:
        self.clock = clock
        self.tables = Tables()
        self._lock = threading.RLock()

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` as one transaction; an exception undoes everything."""
        with self._lock:
            try:
                result = work(MemoryTransaction(self.tables, self.clock()))
            except BaseException:
                self.tables.rollback()
                raise
            self.tables.commit()
            return result

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run ``work`` while no transaction is under way."""
        with self._lock:
            return work(MemoryReader(self.tables, self.clock()))

    def migrate(self) -> list[str]:
        """There is no schema."""
        return []

    def check(self) -> list[str]:
        """Nothing can be damaged here."""
        return []

    def close(self) -> None:
        """Forget everything."""
        self.tables = Tables()
