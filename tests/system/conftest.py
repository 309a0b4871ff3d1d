"""A server, a client of it and an application's database for the tests with real processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from redrive.transports.contract_transport import ContractTransport
from tests.database import PostgresServer
from tests.system.application import Application
from tests.system.servers import ServerProcess


@pytest.fixture(params=["sqlite", "postgres"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The queue's store and the application's database, both of one kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'queue.db'}", f"sqlite:///{tmp_path / 'application.db'}"
        return
    postgres: PostgresServer = request.getfixturevalue("postgres_server")
    with postgres.fresh_database() as queue_url, postgres.fresh_database() as application_url:
        yield queue_url, application_url


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server on SQLite."""
    with ServerProcess(f"sqlite:///{tmp_path / 'queue.db'}") as started:
        yield started


@pytest.fixture
def client(server: ServerProcess) -> Iterator[ContractTransport]:
    """A client of ``server``."""
    with closing(server.client()) as opened:
        yield opened


@pytest.fixture
def application(tmp_path: Path) -> Application:
    """The application's database, in SQLite."""
    return Application(f"sqlite:///{tmp_path / 'application.db'}")
