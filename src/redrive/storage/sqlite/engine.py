"""The SQLite engine: one writer, readers with snapshots of their own, and the way the file is kept sound."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import apsw

from redrive import seams
from redrive.domain.errors import Conflict
from redrive.storage.port import DiskFull, Lost, Reader, Transaction
from redrive.storage.sqlite.backup import copy_from
from redrive.storage.sqlite.connection import named_failures, open_reader, open_writer
from redrive.storage.sqlite.log import Log, write_again
from redrive.storage.sqlite.ownership import Ownership
from redrive.storage.sqlite.reader import SqliteReader
from redrive.storage.sqlite.reserve import Reserve
from redrive.storage.sqlite.schema import refuse_damaged
from redrive.storage.sqlite.transaction import SQL, SqliteTransaction
from redrive.storage.statements import migrations

T = TypeVar("T")
_READERS_MAX = 4
_READER_WAIT_SECONDS = 30
_CHECKS = ("check_busy", "check_dead", "check_live", "check_queues", "check_stranded", "check_bodies")


class SqliteEngine:
    """A store in one file. ``clock`` gives milliseconds since the epoch; ``reserve_bytes`` is the room kept
    beside it for a full disk.

    ``synchronous`` and ``vfs`` exist for the proofs only: anything but FULL loses acknowledged messages; a
    VFS of that name places faults.
    Raises ``Conflict`` when another service process owns the file, a newer version has written it, or it is
    an application's database.
    """

    name = "sqlite"

    def __init__(
        self,
        path: str | Path,
        clock: Callable[[], int] = seams.wall_ms,
        *,
        reserve_bytes: int = 0,
        synchronous: str = "FULL",
        vfs: str | None = None,
    ) -> None:
        self.path = Path(path).resolve()  # of a link: the owner's lock stands beside the file
        self.clock = clock
        self._vfs = vfs
        self._owner = Ownership(self.path)
        self._lock = threading.RLock()
        self._readers: queue.LifoQueue[apsw.Connection | None] = queue.LifoQueue()
        try:
            with named_failures(self.path):
                self._writer = open_writer(self.path, synchronous, vfs)
        except BaseException:
            self._owner.withdraw()
            raise
        try:
            with named_failures(self.path):
                write_again(self.path, vfs)
            self._log = Log(self._writer)
            self._reserve = Reserve(self.path, reserve_bytes)
            self.migrate()
        except BaseException:
            with suppress(Lost):  # what failed first is what is to be told
                self.close()
            raise
        for _ in range(_READERS_MAX):
            self._readers.put(None)  # opened when first needed

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` as one transaction; when this returns, its effects are on disk."""
        with self._lock:
            try:
                with named_failures(self.path), self._log.transaction():
                    result = work(SqliteTransaction(self._writer, self.clock()))
            except DiskFull:
                self._reserve.give_up()
                raise
            if not self._log.fold():
                self._reserve.give_up()
                self._log.fold()
            return result

    def full(self) -> str | None:
        """Why new work must be refused, or None: the reserve for finishing work was given up."""
        return f"{self.path}: the disk is full" if self._reserve.missing() else None

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run ``work`` over one snapshot."""
        connection = self._readers.get(timeout=_READER_WAIT_SECONDS)
        try:
            with named_failures(self.path):
                if connection is None:
                    connection = open_reader(self.path, self._vfs)
                connection.execute("BEGIN")
                try:
                    return work(SqliteReader(connection, self.clock()))
                finally:
                    if connection.in_transaction:  # some errors have ended it already
                        connection.execute("ROLLBACK")
        finally:
            self._readers.put(connection)

    def migrate(self) -> list[str]:
        """Apply the migrations that the file has not seen, each in a transaction of its own."""
        applied = []
        known = migrations("redrive.storage.sqlite")
        with self._lock, named_failures(self.path):
            version = int(str(self._writer.pragma("user_version")))
            if version > len(known):
                raise Conflict(
                    f"{self.path} has schema version {version}; this version of Redrive knows {len(known)}",
                    hint="a newer version of Redrive has written the file: use that version, or a backup",
                )
            for number, statement in enumerate(known[version:], start=version + 1):
                with self._log.transaction():
                    self._writer.execute(statement.sql)
                    self._writer.pragma("user_version", number)
                applied.append(statement.name)
            refuse_damaged(self._writer, self.path)
        return applied

    def check(self) -> list[str]:
        """What SQLite's own check finds, and where rows contradict each other, at most 20 of each kind."""
        with named_failures(self.path):
            connection = open_reader(self.path, self._vfs)
            try:
                connection.execute("BEGIN")
                found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
                if found != ["ok"]:
                    return found
                return [str(row[0]) for name in _CHECKS for row in connection.execute(SQL[name].sql)]
            finally:
                connection.close()

    def backup(self, target: Path) -> int:
        """A consistent copy while the service goes on; its size in bytes. Never overwrites.

        Raises ``FileExistsError`` when ``target`` is there, and :class:`~redrive.storage.port.Lost` when the
        copy cannot be finished; then nothing of it is left.
        """
        return copy_from(self._writer, self._lock, target)

    def close(self) -> None:
        """Close the file; the last connection folds the log into it."""
        with self._lock:
            try:
                with named_failures(self.path):
                    while not self._readers.empty():
                        connection = self._readers.get_nowait()
                        if connection is not None:
                            connection.close()
                    self._writer.close()
            finally:
                self._owner.release()
