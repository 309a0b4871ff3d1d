"""Opening SQLite the way Redrive needs it, and its errors in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from redrive.storage.port import DiskFull, Lost

WAL_BYTES_MAX = 256 * 1024 * 1024
_CACHE_STATEMENTS = 256
_BUSY_MS = 5_000


def open_writer(path: Path, synchronous: str = "FULL") -> apsw.Connection:
    """The one writing connection: WAL, and an fsync at every commit."""
    connection = apsw.Connection(str(path), statementcachesize=_CACHE_STATEMENTS)
    connection.set_busy_timeout(_BUSY_MS)
    try:
        _pragma(connection, "journal_mode", "WAL")
        _pragma(connection, "synchronous", synchronous)
        _pragma(connection, "journal_size_limit", str(WAL_BYTES_MAX))
        _pragma(connection, "cache_size", "-65536")
        _pragma(connection, "temp_store", "MEMORY")
        _pragma(connection, "cell_size_check", "ON")
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> apsw.Connection:
    """A connection that cannot write."""
    connection = apsw.Connection(
        str(path), flags=apsw.SQLITE_OPEN_READONLY, statementcachesize=_CACHE_STATEMENTS
    )
    connection.set_busy_timeout(_BUSY_MS)
    _pragma(connection, "query_only", "ON")
    return connection


def _pragma(connection: apsw.Connection, name: str, value: str) -> None:
    connection.pragma(name, value)


@contextmanager
def named_failures() -> Iterator[None]:
    """Failures of the disk and of the file come out as :class:`Lost`; programming errors as they are."""
    try:
        yield
    except apsw.FullError as error:
        raise DiskFull(f"the disk is full: {error}") from error
    except (
        apsw.IOError,
        apsw.CorruptError,
        apsw.NotADBError,
        apsw.CantOpenError,
        apsw.ReadOnlyError,
        apsw.BusyError,
        apsw.LockedError,
        apsw.NoMemError,
        apsw.PermissionsError,
    ) as error:
        raise Lost(f"the database file failed: {type(error).__name__}: {error}") from error
