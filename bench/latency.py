"""From publish to the start of the handler: an idle worker over REST, in an open loop.

Publishes come at fixed times whatever happened to those before, and each latency counts from the time its
publish was due. Both sides are measured so: theirs is a bare round trip and, apart, one bare commit.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from bench.bare import BareSqlite
from bench.cycles import BODY
from bench.rows import Figure, Row, Settings, in_turn
from bench.served import KEY, bare_server, redrive_server
from redrive import Worker, connect
from redrive.worker import Job

RATE = 40  # a second: far from any limit, so that the worker is idle
ARRIVALS_A_ROUND = 10  # of --work
_SECONDS_MAX = 30.0


def p99(samples: list[float]) -> float:
    """The 99th percentile."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def open_loop(count: int, act: Callable[[int, float], None]) -> None:
    """Call ``act(number, due)`` at the fixed times; ``due`` is on the clock of ``time.perf_counter``."""
    first = time.perf_counter() + 0.05
    for number in range(count):
        due = first + number / RATE
        time.sleep(max(0.0, due - time.perf_counter()))
        act(number, due)


class Publisher:
    """One keep-alive connection that publishes one message and reads the answer."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS_MAX)
        self._headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}

    def publish(self, number: int) -> None:
        """Message ``number``, which its payload says."""
        content = b'{"queue":"latency","payload":{"number":%d,"body":%b}}' % (number, BODY)
        self._connection.request("POST", "/v1/queue/publish", content, self._headers)
        answer = self._connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


class Starts:
    """When the handler of each number began; the worker runs on a thread of this process, over REST."""

    def __init__(self, url: str) -> None:
        self._at: dict[int, float] = {}
        self._arrived = threading.Condition()
        self._queue = connect(url, KEY)
        self._worker = Worker(self._queue, queue="latency", concurrency=1, prefetch=0)
        self._worker.job(self._begin)
        self._thread = threading.Thread(target=self._worker.run, name="bench-worker")
        self._thread.start()

    def _begin(self, job: Job) -> None:
        now = time.perf_counter()
        with self._arrived:
            self._at[job.payload["number"]] = now
            self._arrived.notify_all()

    def take(self, count: int) -> dict[int, float]:
        """The times of ``count`` numbers, once all have begun; forgotten here."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self._at) >= count, _SECONDS_MAX), (
                f"{len(self._at)} of {count} handlers began"
            )
            taken, self._at = self._at, {}
        return taken

    def close(self) -> None:
        """Stop the worker."""
        self._worker.stop()
        self._thread.join(_SECONDS_MAX)
        self._queue.close()


def _ours(publisher: Publisher, starts: Starts, count: int) -> float:
    """Milliseconds."""
    dues: dict[int, float] = {}

    def act(number: int, due: float) -> None:
        dues[number] = due
        publisher.publish(number)

    open_loop(count, act)
    begun = starts.take(count)
    return 1000 * p99([begun[number] - due for number, due in dues.items()])


def _theirs(act: Callable[[int], object], count: int) -> float:
    """Milliseconds."""
    samples: list[float] = []

    def timed(number: int, due: float) -> None:
        act(number)
        samples.append(time.perf_counter() - due)

    open_loop(count, timed)
    return 1000 * p99(samples)


def _measure(settings: Settings) -> Figure:
    count = settings.work * ARRIVALS_A_ROUND
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(redrive_server(settings.folder / "rest.db"))
        bare_url = stack.enter_context(bare_server())
        publisher = stack.enter_context(contextlib.closing(Publisher(url)))
        bare = stack.enter_context(contextlib.closing(Publisher(bare_url)))
        file = stack.enter_context(contextlib.closing(BareSqlite(settings.folder / "bare.db")))
        starts = stack.enter_context(contextlib.closing(Starts(url)))
        _ours(publisher, starts, RATE)
        _theirs(bare.publish, RATE), _theirs(lambda _: file.commit_one(BODY), RATE)
        pairs = in_turn(
            settings.pairs,
            lambda: _ours(publisher, starts, count),
            lambda: _theirs(bare.publish, count) + _theirs(lambda _: file.commit_one(BODY), count),
        )
    return Figure.of("ms", pairs, f"p99 of {count:,} arrivals at {RATE}/s, SQLite behind the server")


ROWS = (
    Row(
        "publish-to-start",
        "publish to handler start, idle worker over REST, open loop, p99, against those of a bare round trip "
        "and one bare commit together",
        3.0, "at most", _measure,
    ),
)  # fmt: skip
