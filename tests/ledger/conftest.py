"""The three databases, each test with a fresh one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from redrive.ledger import Ledger
from tests.database import MysqlServer, PostgresServer
from tests.ledger.stores import Store

TABLES = (
    "effects",
    "redrive_jobs",
    "redrive_payloads",
    "redrive_attempts",
    "redrive_batches",
    "redrive_follow_ups",
    "redrive_windows",
    "redrive_windows_done",
)


@pytest.fixture(params=["sqlite", "postgres", "mysql"])
def bare(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A fresh database without any table."""
    name: str = request.param
    url = f"sqlite:///{tmp_path / 'app.db'}" if name == "sqlite" else request.getfixturevalue(f"{name}_url")
    with contextlib.closing(Store(name, url)) as store:
        yield store


@pytest.fixture(scope="session")
def postgres_prepared(postgres_server: PostgresServer) -> Iterator[str]:
    """A PostgreSQL database with the tables, which the tests share one after the other."""
    with postgres_server.fresh_database() as url:
        Store("postgres", url).prepare()
        yield url


@pytest.fixture(scope="session")
def mysql_prepared(mysql_server: MysqlServer) -> Iterator[str]:
    """A MariaDB database with the tables, which the tests share one after the other."""
    with mysql_server.fresh_database() as url:
        Store("mysql", url).prepare()
        yield url


def emptied(name: str, url: str) -> Iterator[Store]:
    """The shared database with its tables emptied."""
    with contextlib.closing(Store(name, url)) as store:
        store.run(*(f"DELETE FROM {table}" for table in TABLES))
        yield store


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Store]:
    """An SQLite file with the ledger and a table of effects."""
    with contextlib.closing(Store("sqlite", f"sqlite:///{tmp_path / 'app.db'}")) as store:
        store.prepare()
        yield store


@pytest.fixture
def postgres_store(postgres_prepared: str) -> Iterator[Store]:
    """A PostgreSQL database with the ledger and a table of effects."""
    yield from emptied("postgres", postgres_prepared)


@pytest.fixture
def mysql_store(mysql_prepared: str) -> Iterator[Store]:
    """A MariaDB database with the ledger and a table of effects."""
    yield from emptied("mysql", mysql_prepared)


@pytest.fixture(params=["sqlite", "postgres", "mysql"])
def store(request: pytest.FixtureRequest) -> Store:
    """A database of each kind, with the ledger and a table of effects."""
    found: Store = request.getfixturevalue(f"{request.param}_store")
    return found


@pytest.fixture
def ledger(store: Store) -> Iterator[Ledger]:
    """A ledger with the store as its own database."""
    ledger = store.ledger()
    yield ledger
    ledger.close()
