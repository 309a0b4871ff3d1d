"""What a database's error means to the ledger, by its number: a race to run again, missing tables, or
neither."""

from __future__ import annotations

import sqlite3
from enum import Enum
from typing import Any


class Verdict(Enum):
    """What to make of an error."""

    RETRY = "retry"
    RETRY_WHOLE = (
        "retry whole"  # the savepoint may be gone with the transaction: only a whole rollback is sure
    )
    LOST = "lost"  # the connection; also a race to run again, on another one
    MISSING = "missing"
    ENDED = "ended"  # the savepoint is gone: somebody ended the transaction
    OTHER = "other"


_SQLITE_RETRY = {5, 6}  # BUSY, LOCKED
_POSTGRES = {
    "40001": Verdict.RETRY,
    "40P01": Verdict.RETRY,
    "55P03": Verdict.RETRY,
    "57P01": Verdict.LOST,
    "57P02": Verdict.LOST,
    "57P03": Verdict.LOST,
    "3B001": Verdict.ENDED,
    "25P01": Verdict.ENDED,
}
_MYSQL = {
    1213: Verdict.RETRY_WHOLE,
    1205: Verdict.RETRY_WHOLE,
    1020: Verdict.RETRY_WHOLE,  # MariaDB 11: the row changed since the transaction's snapshot
    1305: Verdict.ENDED,
    1040: Verdict.RETRY,
    0: Verdict.LOST,  # PyMySQL's InterfaceError on a connection that it closed itself
    2003: Verdict.LOST,
    2006: Verdict.LOST,
    2013: Verdict.LOST,
    1927: Verdict.LOST,
}


def verdict(dialect: str, error: BaseException) -> Verdict:
    """What ``error`` (a driver's own, or SQLAlchemy's around it) means on ``dialect``."""
    raw: Any = getattr(error, "orig", None) or error
    if dialect == "sqlite":
        return _sqlite(raw)
    if dialect == "postgres":
        return _postgres(raw)
    number = raw.args[0] if getattr(raw, "args", None) and type(raw).__module__ != "builtins" else None
    if number in (1146, 1054):  # no such table, no such column
        return Verdict.MISSING if "redrive_" in str(raw) else Verdict.OTHER
    return _MYSQL.get(number, Verdict.OTHER) if isinstance(number, int) else Verdict.OTHER


def _sqlite(raw: Any) -> Verdict:
    if not isinstance(raw, sqlite3.Error):
        return Verdict.OTHER
    if getattr(raw, "sqlite_errorcode", 0) & 0xFF in _SQLITE_RETRY:
        return Verdict.RETRY
    text = str(raw)
    if "no such table: redrive_" in text or "no such column: redrive_" in text:
        return Verdict.MISSING
    if "table redrive_" in text and "has no column named" in text:
        return Verdict.MISSING
    return Verdict.ENDED if "no such savepoint" in text else Verdict.OTHER


def _postgres(raw: Any) -> Verdict:
    state = getattr(raw, "sqlstate", None)
    if state is None:
        lost = type(raw).__module__.startswith("psycopg") and type(raw).__name__ == "OperationalError"
        return Verdict.LOST if lost else Verdict.OTHER
    if state in ("42P01", "42703"):  # no such table, no such column
        return Verdict.MISSING if "redrive_" in str(raw) else Verdict.OTHER
    return Verdict.LOST if state[:2] == "08" else _POSTGRES.get(state, Verdict.OTHER)
