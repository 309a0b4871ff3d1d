"""``python -m bench.profile``: the CPU of a message by part and by thread, for profile.md; without syncs."""

from __future__ import annotations

import collections
import contextlib
import cProfile
import logging
import pstats
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import drain
from bench.bare import BareSqlite
from bench.cycles import BATCH, BODY, engine_cycle
from bench.postgres import OurPostgres, fresh, server
from redrive import connect
from redrive.storage.sqlite import SqliteEngine

ROUNDS = 60
JOBS = 8_000
_PARTS = 12


def say(text: str) -> None:
    """One line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def cpu(title: str, work: Callable[[], object]) -> None:
    """Microseconds a message of ``ROUNDS`` batches."""
    began = time.process_time()
    work()
    say(f"{title}: {(time.process_time() - began) * 1e6 / ROUNDS / BATCH:.0f} µs of CPU a message")


def parts(title: str, work: Callable[[], object]) -> None:
    """Shares by file, or by function where it is C; the profile itself costs about as much as the code."""
    profile = cProfile.Profile(time.thread_time)
    profile.enable()
    work()
    profile.disable()
    shares: collections.Counter[str] = collections.Counter()
    for (file, _, name), figures in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        shares[name if file == "~" else file.rpartition("redrive/")[2]] += figures[2]
    total = sum(shares.values())
    say(f"{title}, shares of its CPU:")
    for part, share in shares.most_common(_PARTS):
        say(f"  {share / total:6.1%} {part}")


def by_thread() -> collections.Counter[str]:
    """Seconds of CPU of this process's threads until now, those of one duty together."""
    found: collections.Counter[str] = collections.Counter()
    for thread in threading.enumerate():
        assert thread.ident is not None
        clock = time.pthread_getcpuclockid(thread.ident)
        found[thread.name.rstrip("0123456789-")] += time.clock_gettime(clock)  # type: ignore[assignment]
    return found


def drained(url: str) -> None:
    """The threads of a worker with an empty handler, from its start to the last ack."""
    with contextlib.closing(connect(url)) as queue:
        drain.publish(queue, "drain", [{"number": number} for number in range(JOBS)])
        before = by_thread()
        ends: list[collections.Counter[str]] = []

        class Watched(drain.Counted):
            """Looks at the threads before they end."""

            def ack(self, queue: str, items: Any) -> Any:
                results = super().ack(queue, items)
                if self.drained.is_set():
                    ends.append(by_thread())
                return results

        settings = {"concurrency": drain.CONCURRENCY, "prefetch": drain.PREFETCH}
        seconds = drain.drain(queue, "drain", JOBS, drain.nothing, Watched, **settings)
    say(f"drain on PostgreSQL: {seconds * 1e6 / JOBS:.0f} µs a job, and of CPU:")
    for name, until in (ends[0] - before).most_common():
        if until * 1e6 / JOBS >= 1:
            say(f"  {until * 1e6 / JOBS:4.0f} µs {name}")


def main() -> None:
    """All of them."""
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="redrive-bench-") as folder:
        with contextlib.closing(BareSqlite(Path(folder) / "bare.db")) as bare:
            cpu("SQLite cycle, bare", lambda: [bare.cycle(BODY, BATCH) for _ in range(ROUNDS)])
        with contextlib.closing(SqliteEngine(Path(folder) / "ours.db")) as engine:
            cpu("SQLite cycle, engine calls", lambda: engine_cycle(engine, ROUNDS))
            parts("SQLite cycle, engine calls", lambda: engine_cycle(engine, ROUNDS))
    with server(None) as postgres, fresh(postgres) as url:
        if url is None:
            return
        with contextlib.closing(OurPostgres(url)) as ours:
            work = [lambda: ours.publish(BODY, BATCH)] * ROUNDS
            cpu("PostgreSQL publish, engine calls", lambda: [one() for one in work])
            parts("PostgreSQL publish, engine calls", lambda: [one() for one in work])
            work = [lambda: ours.lease_and_ack(BATCH)] * ROUNDS
            cpu("PostgreSQL lease and ack, engine calls", lambda: [one() for one in work])
            parts("PostgreSQL lease and ack, engine calls", lambda: [one() for one in work])
        drained(url)


if __name__ == "__main__":
    main()
