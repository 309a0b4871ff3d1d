"""The SQLite engine: one writer, readers with snapshots of their own, and the way the file is kept sound."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from redrive import seams
from redrive.storage.port import Reader, Transaction
from redrive.storage.sqlite.connection import named_failures, open_reader, open_writer
from redrive.storage.sqlite.ownership import Ownership
from redrive.storage.sqlite.reader import SqliteReader
from redrive.storage.sqlite.transaction import SqliteTransaction
from redrive.storage.statements import migrations

T = TypeVar("T")
_READERS_MAX = 4
_BACKUP_PAGES = 256


class SqliteEngine:
    """A store in one file. ``clock`` gives milliseconds since the epoch.

    ``synchronous`` exists for the proofs' controls only: anything but FULL loses acknowledged messages.
    Raises ``Conflict`` when another service process owns the file.
    """

    name = "sqlite"

    def __init__(
        self,
        path: str | Path,
        clock: Callable[[], int] = seams.wall_ms,
        *,
        synchronous: str = "FULL",
    ) -> None:
        self.path = Path(path).absolute()
        self.clock = clock
        self._owner = Ownership(self.path)
        self._lock = threading.RLock()
        with named_failures():
            self._writer = open_writer(self.path, synchronous)
        self._readers: queue.LifoQueue[apsw.Connection | None] = queue.LifoQueue()
        for _ in range(_READERS_MAX):
            self._readers.put(None)  # opened when first needed
        self.migrate()

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` as one transaction; when this returns, its effects are on disk."""
        with self._lock, named_failures():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                result = work(SqliteTransaction(self._writer, self.clock()))
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            return result

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run ``work`` over one snapshot."""
        connection = self._readers.get(timeout=30)
        try:
            with named_failures():
                if connection is None:
                    connection = open_reader(self.path)
                connection.execute("BEGIN")
                try:
                    return work(SqliteReader(connection, self.clock()))
                finally:
                    connection.execute("ROLLBACK")
        finally:
            self._readers.put(connection)

    def migrate(self) -> list[str]:
        """Apply the migrations that the file has not seen, each in a transaction of its own."""
        applied = []
        with self._lock, named_failures():
            for number, statement in enumerate(migrations("redrive.storage.sqlite"), start=1):
                version = self._writer.pragma("user_version")
                if int(str(version)) >= number:
                    continue
                with self._writer:
                    self._writer.execute(statement.sql)
                    self._writer.pragma("user_version", number)
                applied.append(statement.name)
        return applied

    def check(self) -> list[str]:
        """What SQLite's own check finds; empty when the file is sound."""
        with self._lock, named_failures():
            found = [str(row[0]) for row in self._writer.execute("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def backup(self, target: Path) -> int:
        """A consistent copy while the service goes on; its size in bytes. Never overwrites."""
        target.touch(exist_ok=False)
        copy = apsw.Connection(str(target))
        try:
            with copy.backup("main", self._writer, "main") as steps:
                while not steps.done:
                    with self._lock, named_failures():  # between steps the writer goes on
                        steps.step(_BACKUP_PAGES)
        finally:
            copy.close()
        return target.stat().st_size

    def close(self) -> None:
        """Close the file; the last connection folds the log into it."""
        with self._lock:
            while not self._readers.empty():
                connection = self._readers.get_nowait()
                if connection is not None:
                    connection.close()
            self._writer.close()
            self._owner.release()
