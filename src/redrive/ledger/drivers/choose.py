"""Which driver runs a program on the connection that the application gave."""

from __future__ import annotations

import sqlite3
import sys
from typing import Any

from redrive.ledger.drivers.alchemy import Alchemy
from redrive.ledger.drivers.carried import Carried
from redrive.ledger.drivers.dbapi import Psycopg, PsycopgAsync, PyMysql, Sqlite
from redrive.ledger.drivers.port import AsyncDriver, Driver


def driver_for(connection: Any) -> tuple[Driver | None, AsyncDriver | None]:
    """(blocking driver, None) or (None, async driver) for ``connection``; TypeError names what is known.

    An AsyncConnection or AsyncSession of SQLAlchemy is not served here: reading its state may need its
    greenlet (:func:`async_alchemy`).
    """
    if isinstance(connection, sqlite3.Connection):
        return Sqlite(connection), None
    if _is(connection, "psycopg", "Connection"):
        return Psycopg(connection), None
    if _is(connection, "psycopg", "AsyncConnection"):
        return None, PsycopgAsync(connection)
    if _is(connection, "pymysql.connections", "Connection"):
        return PyMysql(connection), None
    if _is(connection, "sqlalchemy.engine", "Connection") or _is(connection, "sqlalchemy.orm", "Session"):
        return Alchemy(connection), None
    if _is(connection, "sqlalchemy.orm", "scoped_session"):
        return Alchemy(connection()), None
    raise TypeError(
        "the ledger joins connections of sqlite3, psycopg, PyMySQL and SQLAlchemy (Connection, Session, "
        f"AsyncConnection, AsyncSession), not {type(connection).__module__}.{type(connection).__qualname__}"
    )


def is_async_alchemy(connection: Any) -> bool:
    """Whether ``connection`` is SQLAlchemy's AsyncConnection or AsyncSession."""
    module = "sqlalchemy.ext.asyncio"
    return _is(connection, module, "AsyncConnection") or _is(connection, module, "AsyncSession")


async def async_alchemy(connection: Any) -> AsyncDriver:
    """The driver for SQLAlchemy's AsyncConnection or AsyncSession."""

    async def carry(function: Any) -> Any:
        return await connection.run_sync(lambda _: function())

    inner = await connection.run_sync(Alchemy)
    return Carried(inner, connection, carry)


def _is(connection: Any, module: str, name: str) -> bool:
    """Whether ``connection`` is an instance of that class; a module that nobody imported has no instances."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(connection, getattr(loaded, name))
