"""One consumer of an exercise: the whole life of its process is :func:`main`.

Its order is the first line of standard input. When that input ends, so does the process: a consumer must not
outlive the command that started it, however that one died.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import Any, Final

import msgspec

from redrive import seams
from redrive.exercise.options import Names
from redrive.exercise.tables import Tables
from redrive.transports.rest import open_rest
from redrive.worker import Job, Reject, Worker

GRACE_SECONDS: Final = 5.0
_STDIN: Final = 0


class Order(msgspec.Struct, frozen=True):
    """What a consumer does: where, on which queue, with or without a ledger. It holds secrets."""

    run: str
    url: str
    api_key: str | None
    ca_file: str | None
    database: str
    with_ledger: bool
    concurrency: int
    job_seconds: float


def worker_of(order: Order) -> Worker:
    """The worker of ``order``; its job writes the amount of the source record that the payload names."""
    names = Names(order.run)
    tables = Tables(order.database, names)
    never = threading.Event()

    def amount_of(found: int | None, job: Job) -> int:
        seams.wait(never, order.job_seconds)
        if found is None:
            raise Reject(f"source record {job.payload['record']} has no amount")
        return found

    def settle(job: Job, db: Any) -> dict[str, int]:
        amount = amount_of(tables.amount(db, job.payload["record"]), job)
        tables.apply(db, job.key, job.message_id, amount)
        return {"amount": amount}

    def settle_without_ledger(job: Job) -> None:
        amount_of(tables.apply_alone(job.key, job.message_id, job.payload["record"]), job)

    worker = Worker(
        open_rest(order.url, order.api_key, ca_file=order.ca_file),
        queue=names.queue,
        ledger=order.database if order.with_ledger else None,
        concurrency=order.concurrency,
        wait_seconds=1.0,
        grace_seconds=GRACE_SECONDS,
        relay=False,  # what others planned in that ledger is theirs to publish
    )
    worker.job(settle if order.with_ledger else settle_without_ledger)
    return worker


def main() -> int:
    """Consume until SIGTERM, or until standard input ends; the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    if not (line := _first_line()):
        return 1
    order = msgspec.json.decode(line, type=Order)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    return worker_of(order).run()


def _first_line() -> bytes:
    """Past Python's buffer, whose lock nobody could take at the process's end while a thread reads."""
    line = b""
    while not line.endswith(b"\n") and (some := os.read(_STDIN, 4096)):
        line += some
    return line


def _end_with_parent() -> None:
    while os.read(_STDIN, 4096):
        pass
    os._exit(1)
