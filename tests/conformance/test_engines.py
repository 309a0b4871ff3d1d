"""The engine suite on memory, SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from redrive.storage.conformance import Clock, EngineConformance, Rig
from redrive.storage.memory import MemoryEngine
from redrive.storage.port import Engine
from redrive.storage.sqlite import SqliteEngine


class TestMemory(EngineConformance):
    """The oracle itself."""

    @pytest.fixture
    def rig(self) -> Rig:
        """A fresh store."""
        clock = Clock()
        return Rig(MemoryEngine(clock), clock)


class TestSqlite(EngineConformance):
    """One file."""

    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[Rig]:
        """A fresh store."""
        clock = Clock()
        engine: Engine = SqliteEngine(tmp_path / "store.db", clock)
        yield Rig(engine, clock)
        assert engine.check() == []
        engine.close()
