"""Reconciles JOBS accepted jobs in a SQLite ledger with a queue that holds all but a few of them.

Run as ``python -m tests.system.many_jobs FILE JOBS``; prints how many bytes the process grew by meanwhile,
and what was found. The queue's side comes in an order of its own, page by page.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
from collections.abc import Iterator

from redrive.domain.reconcile import Fate, Held
from redrive.ledger import Ledger

PAGE = 1_000
MISSING = 10
STEP = 7_919  # a prime: page after page jumps through the keys


class Many:
    """A queue of so many messages that are made up as they are listed."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def held(self, queue: str) -> Iterator[list[Held]]:
        """All but the first few jobs."""
        page = []
        for n in range(self._jobs):
            number = n * STEP % self._jobs
            if number >= MISSING:
                page.append(Held(key(number), f"{number:036d}", queue, "ready"))
            if len(page) == PAGE:
                yield page
                page = []
        yield page

    def fate(self, queue: str, job_key: str, message_id: str | None) -> Fate:
        """Of those that are asked for."""
        return Fate(end="acked")


def key(number: int) -> str:
    """The job's key."""
    return f"settlement:2026-10-23:shard-{number:09d}"


def peak() -> int:
    """The process's highest memory so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(file: str, jobs: int) -> None:
    """Fill the ledger, reconcile, tell."""
    ledger = Ledger(f"sqlite:///{file}")
    ledger.install()
    with sqlite3.connect(file) as connection:
        connection.executemany(
            "INSERT INTO redrive_jobs (job_key, queue, state, message_id, updated_at_ms)"
            " VALUES (?, 'q', 1, ?, 0)",
            ((key(n), f"{n:036d}") for n in range(jobs)),
        )
    connection.close()
    ledger.reconcile("another", Many(PAGE)).close()  # what is loaded once is no growth
    before = peak()
    with ledger.reconcile("q", Many(jobs)) as found:
        print(
            json.dumps({"grew": peak() - before, "causes": found.summary.causes, "held": found.summary.held})
        )
    ledger.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
