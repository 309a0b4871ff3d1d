"""A process that has everything imported and forks on request: workers and servers in no time.

A child is the whole program in a process of its own, and runs ``module`` as ``python -m module`` would. What
a module reads from its environment as it is imported must not be among :data:`PRELOADED`. Children die with
their nursery, and it dies with whoever started it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import queue
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

from tests.system.application import Application, Reached, WorkerProcess
from tests.system.servers import ROOT, SECONDS, ServerProcess, environment

PRELOADED = (
    "redrive.api.server",
    "redrive.compose",
    "redrive.ledger",
    "redrive.storage.sqlite",
    "redrive.transports.rest",
    "redrive.worker",
    "tests.database",
    "uvloop",
    "httptools",
)
LOG_BYTES = 8_192
OPTIONAL = ("psycopg", "redrive.storage.postgres")


class Forked:
    """A child, with the part of ``subprocess.Popen`` that the system tests use."""

    stdin = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.ended = threading.Event()

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""
        return self.returncode

    def wait(self, seconds: float) -> int:
        """Its exit code, negative for a signal; raises ``subprocess.TimeoutExpired``."""
        if not self.ended.wait(seconds):
            raise subprocess.TimeoutExpired(f"forked process {self.pid}", seconds)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """A signal, unless it is gone."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, unless it is gone."""
        self.send_signal(signal.SIGKILL)


class Nursery:
    """The nursery, as the one who starts it sees it. Thread-safe."""

    def __init__(self) -> None:
        # what the children say: shown when something failed
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.proof.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            env=environment(),
        )
        self._lock = threading.Lock()
        self._born: queue.SimpleQueue[Forked | None] = queue.SimpleQueue()
        self._children: dict[int, Forked] = {}
        self._listener = threading.Thread(target=self._listen, name="nursery")
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)
        self._listener.join(SECONDS)
        self._process.stdout.close()
        with self._log:
            if kind is not None:
                self._log.seek(max(0, self._log.tell() - LOG_BYTES))
                sys.stderr.write(self._log.read().decode(errors="replace"))

    def start(self, module: str, arguments: Sequence[str], variables: dict[str, str]) -> Forked:
        """A child that runs ``module``, with ``variables`` on top of the environment."""
        order = {"module": module, "arguments": list(arguments), "variables": variables}
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
            child = self._born.get(timeout=SECONDS)
        assert child is not None, "the nursery died"
        return child

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            news = json.loads(line)
            if news["code"] is None:
                child = self._children[news["pid"]] = Forked(news["pid"])
                self._born.put(child)
            else:
                child = self._children.pop(news["pid"])
                child.returncode = news["code"]
                child.ended.set()
        self._born.put(None)


class ForkedWorker(WorkerProcess):
    """A worker from the nursery."""

    def __init__(
        self,
        nursery: Nursery,
        server: Reached,
        application: Application,
        folder: Path,
        options: dict[str, Any] | None = None,
        /,
        **variables: str,
    ) -> None:
        self._nursery = nursery
        super().__init__(server, application, folder, options, **variables)

    def _launch(self, variables: dict[str, str]) -> Any:
        return self._nursery.start(self.command[0], [], variables)


class ForkedServer(ServerProcess):
    """A server from the nursery; its clock cannot be set."""

    def __init__(self, nursery: Nursery, storage: str, **settings: Any) -> None:
        super().__init__(storage, settings=settings)
        self._nursery = nursery

    def _spawn(self, variables: dict[str, str]) -> Any:
        module, *arguments = self._command()[2:]
        return self._nursery.start(module, arguments, variables)


class _Nest:
    """What the nursery process itself does: one thread, so that a fork copies no lock that another holds."""

    def __init__(self) -> None:
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        self._lifeline, self._alive = os.pipe()  # no child keeps the second end, so it closes with us

    def serve(self) -> None:
        """Fork and tell of deaths until standard input is closed."""
        unread = b""
        while True:
            readable, _, _ = select.select([0, self._woken], [], [])
            if self._woken in readable:
                os.read(self._woken, 4096)
                self._bury()
            if 0 in readable:
                heard = os.read(0, 65536)
                if not heard:
                    return
                *lines, unread = (unread + heard).split(b"\n")
                for line in lines:
                    self._fork(json.loads(line))

    def _fork(self, order: dict[str, Any]) -> None:
        pid = os.fork()
        if pid == 0:
            self._become(order)
        _tell(pid, None)

    def _become(self, order: dict[str, Any]) -> NoReturn:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for ours in (self._woken, self._wake, self._alive):
            os.close(ours)
        os.dup2(self._lifeline, 0)
        os.dup2(2, 1)  # only the nursery speaks there
        os.environ.update(order["variables"])
        sys.argv = [order["module"], *order["arguments"]]
        code = 1
        try:
            runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _bury(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                _tell(pid, os.waitstatus_to_exitcode(status))


def _tell(pid: int, code: int | None) -> None:
    sys.stdout.write(json.dumps({"pid": pid, "code": code}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Import, then serve."""
    for name in PRELOADED:
        importlib.import_module(name)
    for name in OPTIONAL:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # children share these pages as long as nobody touches them
    _Nest().serve()


if __name__ == "__main__":
    main()
