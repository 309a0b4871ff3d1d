"""One real server a module, started with ``redrive serve``, and the program pointed at it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redrive.transports.rest import open_rest
from tests.cli.program import KEY, Program


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the module's server is; its admin key is ``KEY``."""
    folder = tmp_path_factory.mktemp("server")
    serve = [
        "serve",
        "--storage",
        "sqlite:///store.db",
        "--port",
        "0",
        "--json",
        "--backup-directory",
        "backups",
    ]
    with Program(folder).start(*serve, api_key=KEY) as server:
        yield json.loads(server.until("stdout", '"ready"'))["url"]
        assert server.stop().code == 0


@pytest.fixture
def redrive(url: str, tmp_path: Path) -> Program:
    """The program with the module's server and its admin key, in a fresh folder."""
    return Program(tmp_path, {"url": url, "api_key": KEY})


@pytest.fixture
def alone(tmp_path: Path) -> Program:
    """The program without any setting, in a fresh folder."""
    return Program(tmp_path)


@pytest.fixture
def client(url: str) -> Iterator[Any]:
    """A client of the module's server."""
    transport = open_rest(url, KEY)
    yield transport
    transport.close()
