"""Handlers that run in child processes: a child finds them, and their workers, by importing this module."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from typing import Any

from tests.worker.memory_queue import MemoryQueue

from redrive.worker import Job, Reject, Worker

OPTIONS: dict[str, Any] = {
    "queue": "work",
    "executor": "processes",
    "concurrency": 2,
    "wait_seconds": 0.2,
    "grace_seconds": 0.5,
}

steps_queue = MemoryQueue(max_retries=1)
steps = Worker(steps_queue, **OPTIONS)


@steps.job
def step(job: Job) -> None:
    """Does what its payload says."""
    match job.payload:
        case "exit":
            os._exit(7)
        case "segfault":
            ctypes.string_at(0)
        case "reject":
            raise Reject(f"pid {os.getpid()}")
        case "hang":
            threading.Event().wait(60)


async_queue = MemoryQueue()
asynchronous = Worker(async_queue, **OPTIONS)


@asynchronous.job
async def async_step(job: Job) -> None:
    """An async handler in a child."""
    raise Reject(f"pid {os.getpid()}")


hang_queue = MemoryQueue(visibility_seconds=0.9)
hanging = Worker(hang_queue, **OPTIONS)


@hanging.job
def hang(job: Job) -> None:
    """Never ends at its first delivery."""
    if job.delivery == 1:
        Path(os.environ["HANG_PID_FILE"]).write_text(str(os.getpid()))
        threading.Event().wait(60)


worn_queue = MemoryQueue()
worn = Worker(worn_queue, **(OPTIONS | {"concurrency": 1, "recycle_after": 2}))


@worn.job
def worn_step(job: Job) -> None:
    """Tells its process."""
    raise Reject(f"pid {os.getpid()}")
