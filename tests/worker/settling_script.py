"""A real worker program: REST queue, SQLite ledger, one insert a job. Started and killed by test_killed."""

from __future__ import annotations

import os
import sqlite3

from redrive.worker import Job, Worker

worker = Worker(
    os.environ["QUEUE_URL"],
    queue="work",
    ledger=os.environ["LEDGER_URL"],
    executor="processes" if os.environ.get("EXECUTOR") == "processes" else "threads",
    concurrency=2,
    visibility_timeout=1,
    wait_seconds=0.3,
)


@worker.job
def settle(job: Job, db: sqlite3.Connection) -> str:
    """The business change."""
    db.execute("insert into effects values (?)", (job.key,))
    return job.key


if __name__ == "__main__":
    print("starting", flush=True)
    raise SystemExit(worker.run())
