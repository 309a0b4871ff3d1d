"""Run where PgQueuer is installed: ``peer_pgqueuer.py URL JOBS`` stores jobs, drains them, prints seconds."""

from __future__ import annotations

import sys
import time

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

BATCH = 1_000  # jobs of one claim: the fastest of 10, 100, 500 and 1,000
_SLICE = 1_000


async def main(url: str, jobs: int) -> float:
    """Seconds from the start of its worker until the queue is empty and the worker has stopped."""
    async with asyncpg.create_pool(url, min_size=2, max_size=8) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        if not await queries.schema_is_installed():
            await queries.install()
        for done in range(0, jobs, _SLICE):
            count = min(_SLICE, jobs - done)
            await queries.enqueue(["drain"] * count, [b'{"number":1}'] * count, [0] * count)
        manager = QueueManager(queries)
        ran = 0

        @manager.entrypoint("drain")
        async def nothing(_job: Job) -> None:
            nonlocal ran
            ran += 1

        began = time.perf_counter()
        await manager.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
        seconds = time.perf_counter() - began
        assert ran == jobs, f"{ran} of {jobs}"
        return seconds


if __name__ == "__main__":
    print(uvloop.run(main(sys.argv[1], int(sys.argv[2]))))  # noqa: T201 - its answer
