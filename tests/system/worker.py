"""The worker program of the system tests; what its handler does is in the payload's ``do``.

``effect`` (or a payload that is no object) adds a row, ``fail`` raises, ``die`` kills the process, ``later``
asks for a second at its first attempt, ``hold`` waits for the file ``free`` beside the signals, ``spin`` does
so without ever waiting, ``seize`` keeps the interpreter's lock, ``leak`` takes memory until there is none,
and ``outlive`` goes on until its lease is over. Each call is noted first where ``TEST_NOTES=1``;
``TEST_DOOM=<point>:<n>`` has this process killed at that point from its n-th job on; ``TEST_ASYNC=1``
makes the handler a coroutine, which then blocks its loop as badly written ones do. How the wall clock is set
says :mod:`tests.system.clocks`.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import resource
import signal
import sqlite3
import threading
from pathlib import Path
from typing import Any

from redrive import seams
from redrive.worker import Job, RetryLater, Worker
from tests.database import wait_for
from tests.system import clocks
from tests.system.application import QUEUE, insert
from tests.system.lifeline import hang_on_standard_input

HELD_SECONDS = 40.0
LEAK_BYTES = 64 << 20
FOLDER = Path(os.environ["REDRIVE_SIGNAL_DIR"])
OPTIONS: dict[str, Any] = {"queue": QUEUE, "concurrency": 4, "visibility_timeout": 2, "wait_seconds": 0.5}
clocks.install()
worker = Worker(
    os.environ["QUEUE_URL"],
    ledger=os.environ["LEDGER_URL"],
    **OPTIONS | json.loads(os.environ["WORKER_OPTIONS"]),
)
_leaked: list[bytes] = []
_noting = threading.Lock()
_calls = itertools.count(1)
_DOOM, _, _DOOMED_AT = os.environ.get("TEST_DOOM", "").partition(":")


def handle(job: Job, db: Any) -> str:
    """The effect, after what the payload asks for."""
    obey(job)
    insert(db, "effects", job.key)
    return job.key


async def handle_badly(job: Job, db: Any) -> str:
    """As the other; what it waits for keeps its whole loop waiting."""
    obey(job)
    if isinstance(db, sqlite3.Connection):
        insert(db, "effects", job.key)
    else:
        await db.execute("insert into effects values (%s)", (job.key,))
    return job.key


worker.job(handle_badly if os.environ.get("TEST_ASYNC") == "1" else handle)


def obey(job: Job) -> None:
    """What ``do`` says, unless the file ``mended`` says that everything was repaired."""
    note(job)
    if _DOOM and next(_calls) >= int(_DOOMED_AT):
        go_to(_DOOM)
    wish = job.payload.get("do", "effect") if isinstance(job.payload, dict) else "effect"
    if (FOLDER / "mended").exists():
        return
    if wish == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if wish == "fail":
        raise ConnectionError("the provider is away")
    if wish == "later" and job.attempt == 1:
        raise RetryLater(after=1)
    if wish == "hold":
        wait_for((FOLDER / "free").exists, HELD_SECONDS, "the file that frees held jobs")
    if wish == "spin":
        spin()
    if wish == "seize":
        ctypes.PyDLL(None).sleep(int(HELD_SECONDS))  # as an extension does that never gives the lock up
    if wish == "leak":
        leak()
    if wish == "outlive":
        wait_for(lambda: not job.still_leased(), HELD_SECONDS, "the lease to end")
        (FOLDER / "lapsed").touch()


def go_to(point: str) -> None:
    """See to it that this worker comes to ``point``, where it is killed."""
    os.environ["REDRIVE_KILL_AT"] = point
    if point == "in_heartbeat":
        wait_for((FOLDER / "free").exists, HELD_SECONDS, "the lease to be extended")
    if point == "in_nack":
        raise ConnectionError("the provider is away")


def spin() -> None:
    """Keep the interpreter busy; looks for the file only now and then."""
    ends = seams.monotonic() + HELD_SECONDS
    while not (FOLDER / "free").exists():
        assert seams.monotonic() < ends
        sum(number * number for number in range(200_000))


def leak() -> None:
    """Take memory, keep it, and have no more of it from then on; raises MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + LEAK_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    while True:
        _leaked.append(b"x" * (1 << 20))


def note(job: Job) -> None:
    """One line in the file of runs, whole also beside other processes."""
    if os.environ.get("TEST_NOTES") != "1":
        return
    line = json.dumps({"key": job.key, "attempt": job.attempt, "delivery": job.delivery, "pid": os.getpid()})
    with _noting, (FOLDER / "runs").open("a") as runs:
        runs.write(line + "\n")


if __name__ == "__main__":
    hang_on_standard_input()
    raise SystemExit(worker.run())
