"""Fixtures for every room: real database servers, a fresh database a test, and Hypothesis' settings."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import database
from tests.turns import Turns

settings.register_profile("short", max_examples=40, deadline=None, print_blob=True)
settings.register_profile(
    "long", max_examples=2000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


_TURNS = pytest.StashKey[Turns]()


def pytest_configure(config: pytest.Config) -> None:
    """Let the processes of a run in several (`-n 2`) agree on whose turn it is."""
    in_several = hasattr(config, "workerinput")
    config.stash[_TURNS] = Turns(Path(config.option.basetemp).parent if in_several else None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Each test in its turn; the wait for it is outside of the test's own time limit."""
    with item.config.stash[_TURNS].turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[database.PostgresServer]:
    """A real PostgreSQL of this session alone, `fsync` on; skips with the reason where there is none."""
    reason = database.postgres_missing()
    if reason:
        pytest.skip(reason)
    with database.PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[database.MysqlServer]:
    """A MariaDB of this session alone, not the machine's; skips with the reason where it is missing."""
    reason = database.mysql_missing()
    if reason:
        pytest.skip(reason)
    with database.MysqlServer() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: database.PostgresServer) -> Iterator[str]:
    """The URL of a fresh, empty PostgreSQL database: ``postgresql://postgres@127.0.0.1:PORT/NAME``."""
    with postgres_server.fresh_database() as url:
        yield url


@pytest.fixture
def mysql_url(mysql_server: database.MysqlServer) -> Iterator[str]:
    """The URL of a fresh, empty MariaDB database: ``mysql://root@127.0.0.1:PORT/NAME``."""
    with mysql_server.fresh_database() as url:
        yield url


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    """The path of an SQLite file that does not exist yet."""
    return tmp_path / "redrive.db"


@pytest.fixture
def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free just now."""
    return database.free_port()
