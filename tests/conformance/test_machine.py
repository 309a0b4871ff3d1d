"""The SQL engines beside the memory model, driven by Hypothesis."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from redrive.domain.states import TRANSITIONS
from redrive.storage.conformance import Clock
from redrive.storage.conformance.machine import EngineMachine
from redrive.storage.port import Engine
from redrive.storage.sqlite import SqliteEngine


class SqliteMachine(EngineMachine):
    """SQLite beside memory."""

    seen = Counter()
    seen_by_model = Counter()

    def make_engine(self, clock: Clock) -> Engine:
        """A fresh file; not synced, since nothing crashes here."""
        folder = tempfile.TemporaryDirectory()
        self._folder = folder
        return SqliteEngine(Path(folder.name) / "store.db", clock, synchronous="OFF")


TestSqliteMachine = SqliteMachine.TestCase


def table() -> set[tuple[str, str, str]]:
    """Every (from, event, to) of the transition table."""
    return {(s, e, t) for (s, e), targets in TRANSITIONS.items() for t in targets}
