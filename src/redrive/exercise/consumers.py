"""The consumers of an exercise, as processes that are started, killed and stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Final

import msgspec

from redrive.arena.stage import end_all
from redrive.exercise.consumer import GRACE_SECONDS, Order

STOP_SECONDS: Final = GRACE_SECONDS + 5.0
_LOG_BYTES: Final = 2_000
_PROGRAM: Final = "import sys; from redrive.exercise.consumer import main; sys.exit(main())"
_FAULTS: Final = (
    "REDRIVE_TESTING", "REDRIVE_UNSAFE", "REDRIVE_KILL_AT", "REDRIVE_PAUSE_AT", "REDRIVE_SIGNAL_DIR",
)  # fmt: skip


class Consumers:
    """Processes that follow ``order``; ``folder`` gets their log. None outlives :meth:`stop`."""

    def __init__(self, order: Order, folder: Path) -> None:
        self._order, self._folder = order, folder
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, count: int) -> None:
        """Start so many more."""
        for _ in range(count):
            self._start(self._order, {})

    def start_doomed(self, job_key: str) -> None:
        """One that works on a job at a time, and is killed when it has committed this one, before its ack."""
        fault = {
            "REDRIVE_TESTING": "1",
            "REDRIVE_KILL_AT": f"before_ack:{job_key}",
            "REDRIVE_SIGNAL_DIR": str(self._folder),
        }
        self._start(msgspec.structs.replace(self._order, concurrency=1), fault)

    def killed(self, seconds: float) -> bool:
        """Wait until the doomed one has ended; whether it was killed, as it should be."""
        process = self._running[-1]
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(seconds) == -signal.SIGKILL
        return False

    def stop(self) -> None:
        """SIGTERM for all, and wait; what does not end in time is killed."""
        ending, self._running = self._running, []
        end_all(ending, STOP_SECONDS)
        for process in ending:
            with contextlib.suppress(OSError):
                _input(process).close()

    def died(self) -> int:
        """How many have ended by themselves."""
        return sum(process.poll() is not None for process in self._running)

    def log(self) -> str:
        """The end of what they logged."""
        with contextlib.suppress(OSError):
            return (self._folder / "log").read_text(errors="replace")[-_LOG_BYTES:]
        return ""

    def _start(self, order: Order, fault: dict[str, str]) -> None:
        kept = {name: value for name, value in os.environ.items() if name not in _FAULTS}
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM],
                env={**kept, **fault},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        # interrupted here, it has no order yet, and ends when it sees that none will come
        self._running.append(process)
        # one that ended at once is found missing later, by what does not happen
        with contextlib.suppress(OSError):
            given = _input(process)
            given.write(msgspec.json.encode(order) + b"\n")
            given.flush()


def _input(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin
