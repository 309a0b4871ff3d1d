"""Where the proofs put their faults: named points at which a worker under test stops or kills itself.

Everything here is dead unless ``REDRIVE_TESTING=1`` when the worker (its child, or the relay) starts.
``REDRIVE_PAUSE_AT=<point>[:<job_key>]`` makes it write ``<REDRIVE_SIGNAL_DIR>/<point>-<pid>`` and wait for
``<REDRIVE_SIGNAL_DIR>/go``; ``REDRIVE_KILL_AT=<point>[:<job_key>]`` makes it SIGKILL itself there, once per
signal directory. ``REDRIVE_UNSAFE=no-receipts|ack-first`` takes that safety away, for controls that must
fail.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from redrive import seams

POINTS = (
    "before_handler",
    "in_handler",
    "before_commit",
    "before_ack",
    "after_ack_sent",
    "in_heartbeat",
    "in_nack",
    "relay_published",
)
PAUSE_SECONDS_MAX = 60.0
_LOOK_SECONDS = 0.01


_armed = False  # looked up once: the environment is slow to read, and every job passes six points


def arm() -> None:
    """Look whether this is a test; whoever runs jobs does so at its start."""
    global _armed
    _armed = os.environ.get("REDRIVE_TESTING") == "1"


def point(name: str, job_key: str) -> None:
    """Do here what the environment asks for; nothing outside tests."""
    if not _armed:
        return
    if _asked("REDRIVE_PAUSE_AT", name, job_key):
        _pause(name)
    if _asked("REDRIVE_KILL_AT", name, job_key) and _first_time(name):
        os.kill(os.getpid(), signal.SIGKILL)


def unsafe(safety: str) -> bool:
    """Whether ``safety`` (``no-receipts`` or ``ack-first``) is switched off; never outside tests."""
    return _armed and os.environ.get("REDRIVE_UNSAFE") == safety


def _asked(variable: str, name: str, job_key: str) -> bool:
    wanted, _, key = os.environ.get(variable, "").partition(":")
    return wanted == name and key in ("", job_key)


def _directory() -> Path | None:
    path = os.environ.get("REDRIVE_SIGNAL_DIR")
    return Path(path) if path else None


def _pause(name: str) -> None:
    directory = _directory()
    if directory is None:
        return
    (directory / f"{name}-{os.getpid()}").touch()
    ends = seams.monotonic() + PAUSE_SECONDS_MAX * seams.TIME_FACTOR
    never = threading.Event()
    while not (directory / "go").exists() and seams.monotonic() < ends:
        seams.wait(never, _LOOK_SECONDS * seams.TIME_FACTOR)


def _first_time(name: str) -> bool:
    directory = _directory()
    if directory is None:
        return True
    try:
        os.close(os.open(directory / f"killed-{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True
