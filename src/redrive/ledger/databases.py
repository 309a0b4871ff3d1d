"""The database that a Ledger was given: where its own transactions run, and what its handlers get."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from redrive.ledger.drivers.alchemy import Alchemy
from redrive.ledger.drivers.carried import Carried, to_thread
from redrive.ledger.drivers.choose import async_alchemy
from redrive.ledger.drivers.dbapi import WAIT_SECONDS, Psycopg, PsycopgAsync, PyMysql, Sqlite, Turn
from redrive.ledger.drivers.port import AsyncDriver, Driver
from redrive.ledger.errors import LedgerError, LedgerFile, LedgerRetry
from redrive.ledger.verdicts import Verdict, verdict

CONNECT_SECONDS = 5
IDLE_CONNECTIONS_MAX = 16

_SCHEMES = {
    "sqlite": "sqlite",
    "postgresql": "postgres",
    "postgres": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
}


class Database(Protocol):
    """Lends drivers for transactions of the ledger's own, one user at a time each."""

    def lend(self) -> Any:
        """A context manager that gives a blocking driver."""

    def alend(self) -> Any:
        """An async context manager that gives a driver for the running loop."""

    def close(self) -> None:
        """Close what is idle."""

    async def aclose(self) -> None:
        """Close what is idle for the running loop."""


def database_for(given: Any) -> Database:
    """The database behind a URL, an Engine, a sessionmaker, or the async forms of these."""
    if isinstance(given, str):
        return UrlDatabase(given)
    for module, names in (
        ("sqlalchemy.engine", ("Engine",)),
        ("sqlalchemy.orm", ("sessionmaker", "scoped_session")),
        ("sqlalchemy.ext.asyncio", ("AsyncEngine", "async_sessionmaker")),
    ):
        loaded = sys.modules.get(module)
        if loaded is not None and isinstance(given, tuple(getattr(loaded, name) for name in names)):
            return AlchemyDatabase(given, is_async=module.endswith("asyncio"))
    raise TypeError(
        "a ledger's database is a URL (sqlite:///file, postgresql://…, mysql://…), an Engine or a "
        f"sessionmaker, not {type(given).__module__}.{type(given).__qualname__}"
    )


class UrlDatabase:
    """Connections of the ledger's own to a URL, in autocommit, kept while idle; a fork starts with none."""

    def __init__(self, url: str) -> None:
        scheme = urlsplit(url).scheme.split("+")[0]
        if scheme not in _SCHEMES:
            raise LedgerError(
                f"a ledger's URL starts with one of {', '.join(_SCHEMES)}, got {scheme or 'none'}"
            )
        self.dialect = _SCHEMES[scheme]
        self._url = url
        self._lock = threading.Lock()
        self._idle: list[Any] = []
        self._async_idle: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        self._process = os.getpid()
        self._turn = Turn()
        self._async_turns: weakref.WeakKeyDictionary[Any, asyncio.Lock] = weakref.WeakKeyDictionary()

    @contextmanager
    def lend(self) -> Iterator[Driver]:
        """A blocking driver on a connection that nobody else uses meanwhile."""
        driver = self._driver(self._idle_one() or self._open())
        try:
            yield driver
        finally:
            if isinstance(driver, Sqlite):
                driver.end_turn()
            if not self._keep(driver):
                with suppress(Exception):
                    driver.handle.close()

    @asynccontextmanager
    async def alend(self) -> AsyncIterator[AsyncDriver]:
        """psycopg's own async connection; sqlite3 and PyMySQL have none, and are carried to threads."""
        if self.dialect != "postgres":
            async with self._async_turn():
                with self.lend() as driver:
                    yield Carried(driver, driver.handle, to_thread)
            return
        idle = self._async_idle.setdefault(asyncio.get_running_loop(), [])
        connection = idle.pop() if idle else await self._aopen()
        driver = PsycopgAsync(connection)
        try:
            yield driver
        finally:
            if connection.closed:
                await self.aclose()  # what killed this one killed its siblings
            elif driver.is_open() or len(idle) >= IDLE_CONNECTIONS_MAX:
                await connection.close()
            else:
                idle.append(connection)

    @asynccontextmanager
    async def _async_turn(self) -> AsyncIterator[None]:
        """One of this loop's coroutines at a time in a SQLite file: those that wait for their turn in the
        loop's few threads would keep the one whose turn it is out of them."""
        if self.dialect != "sqlite":
            yield
            return
        lock = self._async_turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        ours = False
        with suppress(TimeoutError):  # else SQLite says itself that the file is busy
            ours = await asyncio.wait_for(lock.acquire(), WAIT_SECONDS)
        try:
            yield
        finally:
            if ours:
                lock.release()

    def close(self) -> None:
        """Close the idle blocking connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(Exception):
                connection.close()

    async def aclose(self) -> None:
        """Close the idle async connections of the running loop."""
        idle = self._async_idle.get(asyncio.get_running_loop(), [])
        while idle:
            await idle.pop().close()

    def _idle_one(self) -> Any:
        with self._lock:
            if self._process != os.getpid():  # the parent's sockets are not ours to use or close
                self._process, self._idle = os.getpid(), []
                self._turn = Turn()
            return self._idle.pop() if self._idle else None

    def _keep(self, driver: Driver) -> bool:
        connection = driver.handle
        if getattr(connection, "closed", False) or not getattr(connection, "open", True):
            self.close()  # what killed this one killed its siblings
            return False
        try:
            if driver.is_open():
                return False
        except sqlite3.ProgrammingError:  # a change closed it
            return False
        with self._lock:
            if len(self._idle) >= IDLE_CONNECTIONS_MAX:
                return False
            self._idle.append(driver.handle)
        return True

    def _driver(self, connection: Any) -> Driver:
        if self.dialect == "sqlite":
            return Sqlite(connection, self._turn)
        return Psycopg(connection) if self.dialect == "postgres" else PyMysql(connection)

    def _open(self) -> Any:
        try:
            return {"sqlite": self._sqlite, "postgres": self._postgres, "mysql": self._mysql}[self.dialect]()
        except Exception as error:
            if verdict(self.dialect, error) in (Verdict.RETRY, Verdict.LOST):
                raise LedgerRetry(f"the ledger's database cannot be reached: {error}") from error
            raise

    def _sqlite(self) -> Any:
        path = unquote(urlsplit(self._url).path)[1:]
        if path in ("", ":memory:"):
            raise LedgerError(
                "a ledger's SQLite database is a file: sqlite:///relative.db or sqlite:////absolute.db"
            )
        connection = None
        try:
            connection = sqlite3.connect(
                path, timeout=CONNECT_SECONDS, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA schema_version")  # connecting alone does not read the file
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            if verdict("sqlite", error) is Verdict.RETRY:
                raise
            raise LedgerFile(
                f"{path}: {error}",
                hint="its folder must be there, and the file an SQLite database that this user may write",
            ) from error
        return connection

    def _postgres(self) -> Any:
        import psycopg

        return psycopg.connect(self._plain_url(), autocommit=True, connect_timeout=CONNECT_SECONDS)

    async def _aopen(self) -> Any:
        import psycopg

        try:
            return await psycopg.AsyncConnection.connect(
                self._plain_url(), autocommit=True, connect_timeout=CONNECT_SECONDS
            )
        except psycopg.OperationalError as error:
            raise LedgerRetry(f"the ledger's database cannot be reached: {error}") from error

    def _plain_url(self) -> str:
        return "postgresql" + self._url[len(urlsplit(self._url).scheme) :]

    def _mysql(self) -> Any:
        import pymysql

        parts = urlsplit(self._url)
        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        return pymysql.connect(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 3306,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            database=unquote(parts.path.lstrip("/")),
            unix_socket=options.get("unix_socket"),
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
        )


class AlchemyDatabase:
    """An Engine or sessionmaker of the application, with its own pool; ``is_async`` for the asyncio forms.

    Blocking calls on an async one (a worker's probe, its failures, its relay) use connections of the
    ledger's own to the same URL.
    """

    def __init__(self, given: Any, *, is_async: bool) -> None:
        self._given, self._is_async = given, is_async
        self._blocking = _blocking_side(given) if is_async else None

    @contextmanager
    def lend(self) -> Iterator[Driver]:
        """A blocking driver on a fresh Connection or Session, closed afterwards."""
        if self._is_async:
            if self._blocking is None:
                raise LedgerError(
                    "this ledger has an async database without a URL; a blocking call needs a blocking one",
                    hint="give Ledger a URL, an Engine or a sessionmaker",
                )
            with self._blocking.lend() as driver:
                yield driver
            return
        handle = self._handle()
        try:
            yield Alchemy(handle)
        finally:
            self._given.remove() if hasattr(self._given, "remove") else handle.close()

    @asynccontextmanager
    async def alend(self) -> AsyncIterator[AsyncDriver]:
        """A driver on a fresh AsyncConnection or AsyncSession; a blocking Engine's is carried to threads."""
        if not self._is_async:
            handle = self._handle()
            try:
                driver = await to_thread(lambda: Alchemy(handle))
                yield Carried(driver, handle, to_thread)
            finally:
                await to_thread(handle.close)
            return
        if hasattr(self._given, "connect"):
            async with self._given.connect() as connection:
                yield await async_alchemy(connection)
            return
        async with self._given() as session:
            yield await async_alchemy(session)

    def close(self) -> None:
        """Close what is the ledger's own: the pool is the application's."""
        if self._blocking is not None:
            self._blocking.close()

    async def aclose(self) -> None:
        """Nothing: the pool is the application's."""

    def _handle(self) -> Any:
        return self._given.connect() if hasattr(self._given, "connect") else self._given()


def _blocking_side(given: Any) -> UrlDatabase | None:
    """Connections to where an AsyncEngine, or that of an async_sessionmaker, leads; None when it has none."""
    engine = given if hasattr(given, "url") else given.kw.get("bind")
    url = getattr(engine, "url", None)
    if url is None or (url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")):
        return None
    return UrlDatabase(url.render_as_string(hide_password=False))
