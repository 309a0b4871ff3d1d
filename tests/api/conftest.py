"""Real servers on free ports, each in a thread of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from redrive.api.server import Server
from redrive.api.settings import ApiSettings
from redrive.compose import open_service
from redrive.service import ServiceSettings
from tests.api.stand import KEY, StandService
from tests.api.wire import DEADLINE_SECONDS, Caller

Start = Callable[..., Server]


@contextlib.contextmanager
def running(service: Any, settings: ApiSettings | None = None, host: str = "127.0.0.1") -> Iterator[Server]:
    """A server over ``service`` for the length of the block."""
    server = Server(service, host, 0, settings)
    ready = threading.Event()
    thread = threading.Thread(target=server.run, args=(ready.set,), name="server")
    thread.start()
    try:
        assert ready.wait(DEADLINE_SECONDS)
        yield server
    finally:
        server.stop()
        thread.join(DEADLINE_SECONDS)
        assert not thread.is_alive()


@pytest.fixture
def stand() -> StandService:
    """The stand-in service of this test."""
    return StandService()


@pytest.fixture
def start(stand: StandService) -> Iterator[Start]:
    """Starts a server over the stand-in with the given settings; stopped at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda **settings: stack.enter_context(running(stand, ApiSettings(**settings)))


@pytest.fixture
def call(start: Start) -> Caller:
    """Calls a server over the stand-in with default settings."""
    return Caller(start().url, KEY)


SECRET = "the-admin-key-of-these-tests"


@pytest.fixture(scope="module", params=["memory", "sqlite", "postgres"])
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """The real service behind a real server, once a module and engine; called with an admin key."""
    with contextlib.ExitStack() as stack:
        store = "memory:"
        if request.param == "sqlite":
            store = f"sqlite:///{tmp_path_factory.mktemp('live') / 'jobs.db'}"
        elif request.param == "postgres":
            postgres = request.getfixturevalue("postgres_server")
            store = stack.enter_context(postgres.fresh_database())
        service = open_service(store, ServiceSettings(api_key=SECRET))
        stack.callback(service.close)
        service.start(first_key=True)
        server = stack.enter_context(running(service))
        yield Caller(server.url, SECRET, service)
