"""Runs programs: on a connection that the caller gave, or on the ledger's own database."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeAlias

from redrive.ledger.databases import Database, database_for
from redrive.ledger.drivers import AsyncDriver, Driver, Mode, arun, driver_for, run
from redrive.ledger.drivers.choose import async_alchemy, is_async_alchemy
from redrive.ledger.errors import LedgerError, NotBegun
from redrive.ledger.steps import Program

Make: TypeAlias = Callable[[Driver | AsyncDriver, Mode], Program]


class AsyncConnectionLike(Protocol):
    """A connection whose commit is awaited: psycopg's AsyncConnection, SQLAlchemy's AsyncConnection,
    AsyncSession."""

    def commit(self) -> Coroutine[Any, Any, None]:
        """Commit."""


class Drives:
    """What every call of the ledger goes through; ``database`` as Ledger takes it, or None."""

    def __init__(self, database: Any, producer: str) -> None:
        self._database: Database | None = None if database is None else database_for(database)
        self._producer = producer

    def _drive(self, connection: Any, make: Make) -> Any:
        """Run a program on ``connection``, or on our own database; a coroutine for an async connection."""
        if connection is None:
            return self._own(make)
        if is_async_alchemy(connection):
            return _on_async_alchemy(connection, make)
        blocking, looping = driver_for(connection)
        if blocking is not None:
            return run(blocking, make(blocking, blocking.mode()))
        assert looping is not None
        return arun(looping, make(looping, looping.mode()))

    def _program(self, make: Callable[[str, Mode], Program]) -> Any:
        return self._own(lambda driver, mode: make(driver.dialect, mode))

    def _own(self, make: Make) -> Any:
        try:
            with self._needed().lend() as driver:
                return run(driver, make(driver, Mode.OWN))
        except NotBegun:  # an idle connection had died; once more, on a new one
            with self._needed().lend() as driver:
                return run(driver, make(driver, Mode.OWN))

    def _needed(self) -> Database:
        if self._database is None:
            raise LedgerError(
                "this ledger has no database of its own",
                hint="Ledger(url), Ledger(engine) or Ledger(sessionmaker); or pass connection=",
            )
        return self._database


async def _on_async_alchemy(connection: Any, make: Make) -> Any:
    driver = await async_alchemy(connection)
    return await arun(driver, make(driver, driver.mode()))
