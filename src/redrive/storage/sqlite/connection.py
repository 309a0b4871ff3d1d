"""Opening SQLite the way Redrive needs it, and its errors in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import msgspec

from redrive.domain.errors import Conflict
from redrive.storage.port import Damaged, DiskFull, Lost, Unwritable
from redrive.storage.sqlite.schema import most_are_ours

WAL_BYTES_MAX = 256 * 1024 * 1024
_CACHE_STATEMENTS = 256
_BUSY_MS = 5_000
_TABLES_NAMED_MAX = 5


def open_writer(path: Path, synchronous: str = "FULL", vfs: str | None = None) -> apsw.Connection:
    """The one writing connection: WAL, and an fsync at every commit.

    Raises ``Conflict`` for a file with the tables of somebody else, which stays as it is.
    """
    connection = apsw.Connection(str(path), vfs=vfs, statementcachesize=_CACHE_STATEMENTS)
    connection.set_busy_timeout(_BUSY_MS)
    try:
        _refuse_foreign(connection, path)
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


def _refuse_foreign(connection: apsw.Connection, path: Path) -> None:
    """The first migration sets user_version together with our tables: without them a file is not ours,
    whatever version its own program has given it.
    """
    left = path.with_name(path.name + "-wal").exists()
    listed = connection.execute("PRAGMA main.table_list")
    tables = sorted(str(row[1]) for row in listed if not str(row[1]).startswith("sqlite_"))
    versioned = bool(connection.pragma("user_version"))
    if most_are_ours(tables) if versioned else not tables:
        return
    if left:  # a log that its program left stays too; one that we have begun goes as we close
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    named = ", ".join(tables[:_TABLES_NAMED_MAX]) + (", …" if len(tables) > _TABLES_NAMED_MAX else "")
    raise Conflict(
        f"{path} is another application's database, with the tables {named or 'none'}",
        hint="give the queue a file of its own, as sqlite:///redrive.db",
    )


def open_reader(path: Path, vfs: str | None = None) -> apsw.Connection:
    """A connection that cannot write."""
    connection = apsw.Connection(
        str(path), flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs, statementcachesize=_CACHE_STATEMENTS
    )
    connection.set_busy_timeout(_BUSY_MS)
    _pragma(connection, "query_only", "ON")
    return connection


def _pragma(connection: apsw.Connection, name: str, value: str) -> None:
    connection.pragma(name, value)


@contextmanager
def named_failures(path: Path | None = None) -> Iterator[None]:
    """Failures of the disk and of the file come out as :class:`Lost`, rows that cannot be decoded as
    :class:`Damaged`; programming errors as they are. ``path`` is named in them.
    """
    file = f"{path}: " if path is not None else ""
    try:
        yield
    except apsw.FullError as error:
        raise DiskFull(f"{file}the disk is full: {error}") from error
    except apsw.IOError as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:  # no room for the log's index
            raise DiskFull(f"{file}the disk is full: {error}") from error
        raise Lost(f"{file}the database file failed: {type(error).__name__}: {error}") from error
    except apsw.ReadOnlyError as error:
        raise Unwritable(f"{file}the database file failed: {type(error).__name__}: {error}") from error
    except (
        apsw.CorruptError,
        apsw.NotADBError,
        apsw.CantOpenError,
        apsw.BusyError,
        apsw.LockedError,
        apsw.NoMemError,
        apsw.PermissionsError,
    ) as error:
        raise Lost(f"{file}the database file failed: {type(error).__name__}: {error}") from error
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        raise Damaged(f"{file}stored rows are damaged: {error}") from error
    except apsw.ConstraintError as error:
        if getattr(error, "extendedresult", 0) != apsw.SQLITE_CONSTRAINT_DATATYPE:
            raise
        raise Damaged(f"{file}stored rows are damaged: {error}") from error  # read so, and written back
