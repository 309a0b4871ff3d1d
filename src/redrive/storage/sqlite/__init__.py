"""SQLite through apsw: one file, one owner, one writer, fsync before every answer."""

from redrive.storage.sqlite.engine import SqliteEngine

__all__ = ["SqliteEngine"]
