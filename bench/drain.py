"""Drains of a worker: ``python -m bench.drain URL JOBS`` stores jobs, drains them, prints the seconds."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from redrive import Worker, connect
from redrive.transports import Entry, Transport
from redrive.worker import Job

CONCURRENCY = 4
PREFETCH = 1_000  # as much as one lease may bring
_BATCH = 100
_SECONDS_MAX = 600.0


class Counted:
    """A transport that knows when the wanted number of acks has been answered."""

    def __init__(self, transport: Transport, jobs: int) -> None:
        self._transport, self._left = transport, jobs
        self.drained = threading.Event()
        self.ended = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def ack(self, queue: str, items: Sequence[tuple[str, str]]) -> Sequence[Any]:
        """As the transport's."""
        results = self._transport.ack(queue, items)
        assert all(result is True for result in results), results
        self._left -= len(results)
        if self._left <= 0:
            self.ended = time.perf_counter()
            self.drained.set()
        return results


def drain(
    transport: Transport,
    queue: str,
    jobs: int,
    handler: Callable[..., Any],
    counting: type[Counted] = Counted,
    **settings: Any,
) -> float:
    """Seconds from the start of a worker until the last of ``jobs`` is acknowledged; then it is stopped."""
    counted = counting(transport, jobs)
    worker = Worker(counted, queue=queue, **settings)  # type: ignore[arg-type]  # the rest is delegated
    worker.job(handler)
    running = threading.Thread(target=worker.run, name="bench-worker")
    began = time.perf_counter()
    running.start()
    try:
        assert counted.drained.wait(_SECONDS_MAX), f"not drained within {_SECONDS_MAX:.0f} s"
    finally:
        while running.is_alive():  # a stop before the start has no effect
            worker.stop()
            running.join(0.1)
    return counted.ended - began


def publish(transport: Transport, queue: str, payloads: Sequence[Any], key: str = "") -> None:
    """One message for each payload, in batches; with ``key``, under job keys of that and their place."""
    for first in range(0, len(payloads), _BATCH):
        part = payloads[first : first + _BATCH]
        transport.publish(
            queue,
            [
                Entry(payload=payload, job_key=f"{key}:{first + place}" if key else None)
                for place, payload in enumerate(part)
            ],
        )


def nothing(job: Job) -> None:
    """The empty handler."""


def main(url: str, jobs: int) -> None:
    """One drain of an empty handler without a ledger."""
    logging.disable(logging.WARNING)
    with contextlib.closing(connect(url)) as queue:
        publish(queue, "drain", [{"number": number} for number in range(jobs)])
        seconds = drain(queue, "drain", jobs, nothing, concurrency=CONCURRENCY, prefetch=PREFETCH)
    sys.stdout.write(f"{seconds}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
