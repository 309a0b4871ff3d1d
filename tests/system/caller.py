"""A worker without a ledger, whose jobs call the dependency at ``TEST_DEPENDENCY`` with what ``do`` says."""

from __future__ import annotations

import json
import os
import socket

from redrive.worker import Job, Worker
from tests.system.application import QUEUE
from tests.system.lifeline import hang_on_standard_input
from tests.system.servers import SECONDS

OPTIONS = {"queue": QUEUE, "wait_seconds": 0.5}
worker = Worker(os.environ["QUEUE_URL"], **OPTIONS | json.loads(os.environ["WORKER_OPTIONS"]))


@worker.job
def call(job: Job) -> None:
    """One call; raises ConnectionError when the dependency does not do it."""
    address = ("127.0.0.1", int(os.environ["TEST_DEPENDENCY"]))
    with socket.create_connection(address, timeout=SECONDS) as line:
        line.sendall(f"{job.payload['do']} {job.key}\n".encode())
        if line.recv(16) != b"done":
            raise ConnectionError("the dependency is away")


if __name__ == "__main__":
    hang_on_standard_input()
    raise SystemExit(worker.run())
