"""PostgreSQL's failures in our words."""

from __future__ import annotations

from psycopg import Error, errors
from psycopg.pq.abc import PGresult

from redrive.storage.port import DiskFull, Lost, Unwritable

# The database gave way to another transaction, or a plan or statement of this session went stale: the same
# work can run again from the start.
_AGAIN = frozenset({"40001", "40P01", "55P03"})
_STALE = frozenset({"0A000", "26000"})
_LOST_CLASSES = ("08", "53", "57", "58", "XX")


class Again(Exception):
    """The transaction must run again from its start; nothing of it was stored."""


class Dropped(Lost):
    """The connection is gone, and with it the transaction that was under way."""


class Refusing(Dropped, Unwritable):
    """The database is read-only: this connection is given up for one that may reach another."""


def from_result(result: PGresult) -> Exception:
    """The exception that stands for a failed result."""
    return from_error(errors.error_from_result(result, "utf-8"))


def from_error(error: Error) -> Exception:
    """The exception that stands for an error of the driver; errors of the statement stay as they are."""
    state = error.sqlstate or ""
    if state in _AGAIN:
        return Again(f"the database asked for another try ({state}): {error}")
    if state in _STALE:
        return Dropped(f"a prepared statement went stale ({state}): {error}")
    if state == "53100":
        return DiskFull(f"the database has no room: {error}")
    if state == "25006":
        return Refusing(f"the database is read-only (a standby, or set so): {error}")
    if state.startswith(_LOST_CLASSES):
        return Dropped(f"the database failed ({state}): {error}")
    if not state and isinstance(error, errors.OperationalError | errors.InterfaceError):
        return Dropped(f"the connection to the database failed: {error}")
    return error
