"""The write-ahead log: where a commit becomes durable, and from where it is folded into the file."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from redrive.storage.port import Lost, UnknownOutcome
from redrive.storage.sqlite.connection import WAL_BYTES_MAX

FOLD_PAGES = 1_000
_PAGE_BYTES = 4_096
_CHUNK_BYTES = 65_536  # SQLite writes less than 128 KiB at once
_LOG = logging.getLogger("redrive.storage")


def write_again(database: Path, vfs: str | None = None) -> None:
    """Make durable what an earlier process left in the log: each byte is written as it is, then synced.

    That process may have been told that a sync failed. What such a sync did not write the system takes for
    written: it can be read until the power fails, and no later sync writes it. Commits after it would hang on
    it. Nobody else may write the log meanwhile.
    """
    path = database.with_name(database.name + "-wal")
    size = path.stat().st_size if path.exists() else 0
    if size == 0:
        return
    file = apsw.VFSFile(vfs or "", str(path), [apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        for offset in range(0, size, _CHUNK_BYTES):
            file.xWrite(file.xRead(min(_CHUNK_BYTES, size - offset), offset), offset)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
    finally:
        file.xClose()


class Log:
    """The log of the writing connection; one thread at a time.

    SQLite would fold it by itself, and say nothing when that fails. ``fold_pages``: from how many on.
    """

    def __init__(self, writer: apsw.Connection, fold_pages: int = FOLD_PAGES) -> None:
        self.fold_pages = fold_pages
        self.failure: apsw.Error | None = None  # why it could not be folded the last time
        self._writer = writer
        self._pages = 0
        writer.set_wal_hook(self._grown)  # in place of SQLite's own

    def _grown(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One transaction: durable when this is left, undone by an exception.

        Raises ``UnknownOutcome`` when the commit failed and a restart could still find it in the log, and
        ``Lost`` when the log has outgrown its bound because it cannot be folded.
        """
        if self.failure is not None and self._pages * _PAGE_BYTES > WAL_BYTES_MAX:
            self.fold()
            if self.failure is not None:
                raise Lost(f"the log of {self._pages} pages cannot be folded into the file: {self.failure}")
        self._undo()
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._undo()
            raise
        self._commit()

    def _undo(self) -> None:
        if self._writer.in_transaction:  # some errors have undone it already
            self._writer.execute("ROLLBACK")

    def _commit(self) -> None:
        try:
            self._writer.execute("COMMIT")
        except BaseException as error:
            self._undo()
            if isinstance(error, apsw.IOError) and not self._buried():
                raise UnknownOutcome(f"what became of a commit is unknown: {error}") from error
            raise

    def _buried(self) -> bool:
        """Write over what a failed commit left in the log.

        Its sync failed, or what came after: all of it may be in the log, and whoever opens the file next
        would take it for done. The next commit is written to the same place; this one changes nothing else.
        """
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.pragma("user_version", self._writer.pragma("user_version"))
            self._writer.execute("COMMIT")
        except apsw.Error:
            self._undo()
            return False
        return True

    def fold(self) -> bool:
        """Copy the log into the file when it has grown; the next writer begins it anew. False: no room.

        What is in the log is durable there: a failure costs nobody an answer, is logged, and tried again.
        """
        if self._pages < self.fold_pages:
            return True
        try:
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except (apsw.BusyError, apsw.LockedError):
            return True
        except apsw.Error as error:
            if self.failure is None:
                _LOG.error("the log cannot be folded into the file: %s: %s", type(error).__name__, error)
            self.failure = error
            return not isinstance(error, apsw.FullError)
        self.failure = None
        return True
