"""A Redrive server in a process of its own, to be killed, stopped and started again on the same port."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from redrive.transports.contract_transport import ContractTransport
from redrive.transports.rest import open_rest
from tests.database import free_port, wait_for

ROOT = Path(__file__).parents[2]
KEY = "system-key-0123456789"
SECONDS = 30.0


def environment(**variables: str) -> dict[str, str]:
    """This process's environment for a child that imports ``tests``, with ``variables``."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "REDRIVE_API_KEY": KEY,
        "REDRIVE_TESTING": "1",
        **variables,
    }


class ServerProcess:
    """One server over ``storage`` on one port. ``settings`` are fields of ApiSettings."""

    def __init__(self, storage: str, *, settings: dict[str, Any] | None = None, **variables: str) -> None:
        self.storage = storage
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._settings = json.dumps(settings or {})
        self._variables = variables
        self._process: Any = None  # as subprocess.Popen shows it

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def launch(self, **variables: str) -> Any:
        """The process, not waited for, with ``variables`` on top of its environment."""
        assert self._process is None
        self._process = self._spawn(self._variables | variables)
        return self._process

    def _spawn(self, variables: dict[str, str]) -> Any:
        return subprocess.Popen(
            self._command(),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE if self._variables.get("TEST_STDERR") else None,
            text=True,
            cwd=ROOT,
            env=environment(**variables),
        )

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "tests.system.serve", self.storage, str(self.port), self._settings]

    def start(self, **variables: str) -> None:
        """Start it with ``variables`` on top of its environment, and return when it can take work."""
        self.launch(**variables)
        wait_for(self.ready, SECONDS, f"the server on {self.storage} to be ready")

    def ready(self) -> bool:
        """Whether ``/readyz`` answers 200; AssertionError when the process is gone."""
        assert self._process is not None
        assert self._process.poll() is None, f"the server ended with {self._process.returncode}"
        return self.probe() == 200

    def probe(self) -> int | None:
        """The status of ``/readyz``, None without an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        with contextlib.closing(connection):
            try:
                connection.request("GET", "/readyz")
                return connection.getresponse().status
            except (OSError, http.client.HTTPException):
                return None

    def send(self, number: signal.Signals) -> None:
        """A signal to the process."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self._process is None:
            return
        self._process.kill()
        self._ended()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.send(signal.SIGTERM)
        return self._ended()

    def _ended(self) -> int:
        assert self._process is not None
        process, self._process = self._process, None
        code: int = process.wait(SECONDS)
        for pipe in (process.stdin, process.stderr):
            if pipe is not None:
                pipe.close()
        return code

    def client(self) -> ContractTransport:
        """A client with the admin key; close it."""
        return open_rest(self.url, KEY)


class ServeCommand(ServerProcess):
    """The same through ``redrive serve``."""

    def _command(self) -> list[str]:
        address = ["--host", "127.0.0.1", "--port", str(self.port)]
        return [sys.executable, "-m", "redrive", "serve", "--storage", self.storage, *address]
