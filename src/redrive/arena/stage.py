"""The processes of a night: the server, the provider, the workers. Every one is stopped with the stage."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import urllib3

from redrive import seams

READY_SECONDS: Final = 20.0
STOP_SECONDS: Final = 8.0
LOOK_SECONDS: Final = 0.05
_CLI: Final = "import sys; from redrive.cli import main; sys.exit(main())"


def end_all(processes: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    """SIGTERM for all, and wait; what does not end within ``seconds`` is killed."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(seconds)


class StageProblem(RuntimeError):
    """A process of the night did not start; the message ends with what it said."""


def until(happened: Callable[[], bool], seconds: float) -> bool:
    """Look again and again until ``happened()`` or ``seconds`` have passed; whether it did."""
    ends = seams.monotonic() + seconds
    never = threading.Event()
    while not happened():
        if seams.monotonic() >= ends:
            return False
        seams.wait(never, LOOK_SECONDS)
    return True


@dataclass(slots=True)
class Stage:
    """Starts processes with one environment, in ``folder``, where their logs are too.

    ``storage`` is the server's storage URL, ``game_url`` the game's database, ``api_key`` the admin's key,
    ``extra`` more environment for the workers.
    """

    folder: Path
    storage: str
    game_url: str
    api_key: str
    extra: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    provider_url: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _logs: list[IO[bytes]] = field(default_factory=list)

    def start_server(self) -> None:
        """Start the real server on a free port of loopback; returns when it can take work."""
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        arguments = ["serve", "--storage", self.storage, "--host", "127.0.0.1", "--port", str(port)]
        self._start("server", [sys.executable, "-c", _CLI, *arguments])
        if not until(lambda: self._answers("server", f"{self.url}/readyz"), READY_SECONDS):
            raise self._problem("server", "is not ready")

    def start_provider(self, seed: int, data: Path, faults: str) -> None:
        """Start the provider with its books from ``data``; returns when it serves."""
        port = free_port()
        self.provider_url = f"http://127.0.0.1:{port}"
        arguments = ["--port", str(port), "--seed", str(seed), "--data", str(data), "--faults", faults]
        self._start("provider", [sys.executable, "-m", "redrive.arena.provider", *arguments])
        if not until(
            lambda: self._answers("provider", f"{self.provider_url}/_control/counts"), READY_SECONDS
        ):
            raise self._problem("provider", "is not ready")

    def start_worker(self, name: str, reference: str) -> None:
        """Start one worker process, ``redrive worker run <reference>``."""
        self._start(name, [sys.executable, "-c", _CLI, "worker", "run", reference], self.extra)

    def alive(self, name: str) -> bool:
        """Whether the named process runs."""
        process = self.processes.get(name)
        return process is not None and process.poll() is None

    def name_of(self, pid: int) -> str:
        """The name of the process with this id, or an empty string."""
        return next((name for name, process in self.processes.items() if process.pid == pid), "")

    def kill(self, name: str) -> None:
        """SIGKILL one process; nothing of it runs any more when this returns."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait(STOP_SECONDS)

    def stop(self, *names: str) -> None:
        """SIGTERM the named processes and wait for them; what does not end in time is killed."""
        end_all([self.processes.pop(name) for name in names if name in self.processes], STOP_SECONDS)

    def close(self, keep: tuple[str, ...] = ()) -> None:
        """Stop everything but ``keep``: the workers first, then provider and server."""
        self.stop(*[name for name in self.processes if name not in ("server", "provider", *keep)])
        self.stop(*[name for name in ("provider", "server") if name not in keep])
        for log in self._logs:
            log.close()

    def _start(self, name: str, command: list[str], extra: Mapping[str, str] | None = None) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        self._logs.append(log)
        environment = {
            **os.environ,
            "REDRIVE_API_KEY": self.api_key,
            "REDRIVE_URL": self.url,
            "REDRIVE_LEDGER": self.game_url,
            "REDRIVE_ARENA_PROVIDER": self.provider_url,
            "PYTHONUNBUFFERED": "1",
            **(extra or {}),
        }
        self.processes[name] = subprocess.Popen(
            command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def _answers(self, name: str, url: str) -> bool:
        if not self.alive(name):
            raise self._problem(name, "ended at once")
        with contextlib.suppress(urllib3.exceptions.HTTPError), urllib3.PoolManager(retries=False) as pool:
            return pool.request("GET", url, timeout=1.0).status == 200
        return False

    def _problem(self, name: str, what: str) -> StageProblem:
        said = (self.folder / f"{name}.log").read_text(errors="replace")[-1500:]
        return StageProblem(f"the {name} {what}; its log ends:\n{said}")


def free_port() -> int:
    """A TCP port of loopback that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
