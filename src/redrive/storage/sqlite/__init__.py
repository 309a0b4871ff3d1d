"""SQLite through apsw: one file, one owner, one writer, fsync before every answer."""

from redrive.storage.sqlite.engine import SqliteEngine
from redrive.storage.sqlite.reserve import RESERVE_BYTES

__all__ = ["RESERVE_BYTES", "SqliteEngine"]
