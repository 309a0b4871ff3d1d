"""The engine suite on memory, SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from redrive.storage.conformance import Clock, EngineConformance, Rig, damage_memory
from redrive.storage.memory import MemoryEngine
from redrive.storage.postgres import PostgresEngine
from redrive.storage.sqlite import SqliteEngine
from tests.conformance.damage import damage_postgres, damage_sqlite


class TestMemory(EngineConformance):
    """The oracle itself."""

    @pytest.fixture
    def rig(self) -> Rig:
        """A fresh store."""
        clock = Clock()
        engine = MemoryEngine(clock)
        return Rig(engine, clock, damage=damage_memory(engine))


class TestSqlite(EngineConformance):
    """One file."""

    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[Rig]:
        """A fresh store."""
        clock = Clock()
        engine = SqliteEngine(tmp_path / "store.db", clock)
        yield Rig(engine, clock, damage=damage_sqlite(engine))
        assert engine.check() == []
        engine.close()


class TestPostgres(EngineConformance):
    """One database."""

    @pytest.fixture
    def rig(self, postgres_url: str) -> Iterator[Rig]:
        """A fresh store."""
        clock = Clock()
        engine = PostgresEngine(postgres_url, clock)
        yield Rig(engine, clock, damage=damage_postgres(postgres_url))
        assert engine.check() == []
        engine.close()
