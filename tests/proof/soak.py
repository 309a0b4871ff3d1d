"""A server and a worker at steady work for long: memory, descriptors, threads and the file level off.

The work is of every kind: most jobs succeed, some fail until they are dead, some come delayed, some hold
their lease over several extensions. Dead letters are purged now and then: of them the store keeps the
evidence for a month, of all other jobs a small record for a day, so that it grows with the failed jobs. What
is said of memory is the slope through the samples after a warm-up, as the median of the slopes between all
pairs of them, which a single jump does not move. The store is larger than the server's cache
from the beginning, so that no cache grows with it. An allocator settles for long, by ever smaller steps: half
of the round is warm-up.
"""

from __future__ import annotations

import http.client
import itertools
import random
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil

from redrive.domain.errors import ConfirmationRequired
from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from tests.proof.runs import Found, Proof
from tests.system.application import QUEUE, Application, WorkerProcess
from tests.system.servers import ServerProcess

MIB, HOUR_SECONDS = 2**20, 3_600
PACE_SECONDS = 0.05
KINDS = ("effect",) * 33 + ("fail",) + ("delayed",) * 5 + ("hold",)
HELD_TOGETHER_SECONDS = 5.0  # long jobs are let go this often
SETTLED = 1 / 2  # of the samples are warm-up
SLOPE_MAX = 1.0  # MiB an hour
SPARE = 3  # descriptors or threads that come and go
BALLAST_MIB = 96.0  # of messages that nobody takes: more than the writing connection's cache of 64 MiB
BALLAST_QUEUE, BALLAST_BATCH, BALLAST_BYTES = "ballast", 100, 8_000
EVIDENCE_KIB_MAX = 24  # of a failed job: three attempts, a page each with its stack, its letter, its share of
# the records of all jobs
WAL_MIB = 8  # that come and go


@dataclass(frozen=True)
class Length:
    """How long a round lasts, how often it looks, and whether it is long enough to judge slopes."""

    minutes: float
    sample_seconds: float
    slopes: bool


LONG = Length(120.0, 10.0, slopes=True)
SHORT = Length(0.75, 1.0, slopes=False)
GLANCE = Length(0.2, 1.0, slopes=False)


@dataclass
class Samples:
    """What one process showed, in the order of the samples; ``at`` in seconds."""

    at: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)  # MiB
    descriptors: list[float] = field(default_factory=list)
    threads: list[float] = field(default_factory=list)

    def take(self, process: psutil.Process, at: float) -> None:
        """One more."""
        with process.oneshot():
            self.at.append(at)
            self.memory.append(process.memory_info().rss / MIB)
            self.descriptors.append(process.num_fds())
            self.threads.append(process.num_threads())

    def slope(self) -> float:
        """MiB an hour, after the warm-up."""
        points = list(zip(self.at, self.memory, strict=True))[int(len(self.at) * SETTLED) :]
        slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.combinations(points, 2)]
        return statistics.median(slopes) * HOUR_SECONDS


@dataclass
class Store:
    """The files of the store in MiB, and how many jobs had been published that fail for good."""

    sizes: list[float] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)

    def take(self, folder: Path, failed: int) -> None:
        """One more."""
        main, log = folder / "queue.db", folder / "queue.db-wal"
        size, waiting = (file.stat().st_size / MIB if file.exists() else 0.0 for file in (main, log))
        self.sizes.append(size + waiting)
        self.failed.append(failed)


def grown(values: list[float]) -> float:
    """By how much the last third is above the middle one, peak against peak."""
    third = len(values) // 3
    return max(values[-third:]) - max(values[third:-third])


def soak(seed: int, *, length: Length = LONG, leaks: bool = False) -> Found:
    """One round. ``leaks``: the control, in which somebody opens connections and never closes them."""
    found, luck = Found(), random.Random(seed)
    server_seen, worker_seen, store = Samples(), Samples(), Store()
    with tempfile.TemporaryDirectory(prefix="redrive-proof-") as name, ExitStack() as stack:
        folder = Path(name)
        server = stack.enter_context(ServerProcess(f"sqlite:///{folder / 'queue.db'}"))
        application = Application(f"sqlite:///{folder / 'application.db'}")
        with closing(server.client()) as client:
            policy = {"base_seconds": 0.5, "max_seconds": 1}
            client.call("queue.create", {"name": QUEUE, "max_retries": 2, "retry_policy": policy})
            if length.slopes:
                _fill(client)
        worker = stack.enter_context(WorkerProcess(server, application, folder / "runs", {"concurrency": 8}))
        processes = [(server_seen, server._process.pid), (worker_seen, worker.pid)]
        watched = [(samples, psutil.Process(pid)) for samples, pid in processes]
        published = stack.enter_context(at_work(server, folder / "runs", luck))
        pause, began = threading.Event(), time.monotonic()
        while (at := time.monotonic() - began) < length.minutes * 60:
            for samples, process in watched:
                samples.take(process, at)
            store.take(folder, published["fail"])
            if leaks:
                _leak(server, stack)
            pause.wait(length.sample_seconds)
        found.count("jobs done", application.count())
        found.expect(application.count() > 0, "no job was done")
    found.count("minutes", max(1, round(length.minutes)))
    _judge(found, "server", server_seen, length)
    _judge(found, "worker", worker_seen, length)
    _judge_store(found, store, length)
    return found


def _fill(client: ContractTransport) -> None:
    filling = "x" * BALLAST_BYTES
    for _ in range(int(BALLAST_MIB * MIB / BALLAST_BATCH / BALLAST_BYTES)):
        client.publish(BALLAST_QUEUE, [Entry(payload=filling)] * BALLAST_BATCH)


def _leak(server: ServerProcess, stack: ExitStack) -> None:
    """Two connections that have asked something, as a server keeps them for the next request."""
    for _ in range(2):
        line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        stack.callback(line.close)
        line.request("GET", "/healthz")
        line.getresponse().read()


def _judge(found: Found, what: str, samples: Samples, length: Length) -> None:
    slope = samples.slope()
    found.at_worst(f"{what}: MiB an hour, over {length.minutes:g} min", slope)
    found.at_worst(f"{what}: MiB at most", max(samples.memory))
    if length.slopes:
        found.expect(slope <= SLOPE_MAX, f"the {what} grows by {slope:.2f} MiB an hour")
    for kind, values in (("descriptors", samples.descriptors), ("threads", samples.threads)):
        more = grown(values)
        found.at_worst(f"{what}: {kind} at most", max(values))
        found.expect(more <= SPARE, f"the {what} has {more:g} {kind} more at the end than in the middle")


def _judge_store(found: Found, store: Store, length: Length) -> None:
    found.at_worst("MiB of the store at most", max(store.sizes))
    middle = len(store.sizes) // 2
    failed = store.failed[-1] - store.failed[middle]
    grown_mib = max(store.sizes[middle:]) - max(store.sizes[: middle + 1])
    if length.slopes:
        found.at_worst("KiB of the store a failed job", max(0.0, grown_mib) * 1_024 / max(1, failed))
        bound = failed * EVIDENCE_KIB_MAX / 1_024 + WAL_MIB
        found.expect(grown_mib <= bound, f"the store grew by {grown_mib:.1f} MiB with {failed} failed jobs")


@contextmanager
def at_work(server: ServerProcess, folder: Path, luck: random.Random) -> Iterator[Counter[str]]:
    """Publishing at a steady pace for the length of the block: how many of each kind. Raises what went wrong
    with it.
    """
    stopped, failed, published = threading.Event(), list[BaseException](), Counter[str]()

    def work() -> None:
        try:
            with closing(server.client()) as client:
                for number in itertools.count():
                    if stopped.wait(PACE_SECONDS):
                        return
                    kind = luck.choice(KINDS)
                    _publish(client, number, kind, luck)
                    published[kind] += 1
                    _let_go(folder, number)
                    if number % 600 == 599:
                        _purge(client)
        except BaseException as error:
            failed.append(error)
            raise

    thread = threading.Thread(target=work, name="soak")
    thread.start()
    try:
        yield published
    finally:
        stopped.set()
        thread.join(30)
    if failed:
        raise failed[0]


def _publish(client: ContractTransport, number: int, kind: str, luck: random.Random) -> None:
    payload = {"do": "effect" if kind == "delayed" else kind, "filling": "x" * luck.randint(10, 2_000)}
    delay = luck.randint(1, 20) if kind == "delayed" else None
    client.publish(QUEUE, [Entry(payload=payload, job_key=f"job:{number}", delay_seconds=delay)])


def _let_go(folder: Path, number: int) -> None:
    """The file that long jobs wait for is there for a moment, now and then."""
    every = int(HELD_TOGETHER_SECONDS / PACE_SECONDS)
    if number % every == 0:
        (folder / "free").touch()
    elif number % every == every // 4:
        (folder / "free").unlink()


def _purge(client: ContractTransport) -> None:
    asked = {"queue": f"{QUEUE}.dlq"}
    try:
        client.call("queue.purge", asked)
    except ConfirmationRequired as required:
        details = required.details or {}
        client.call("queue.purge", asked | {"confirm": details["confirm"]})


PROOFS = (
    Proof(
        "soak",
        "At steady work server and worker do not grow, and the store only by the evidence of failed jobs.",
        "minutes",
        120,
        soak,
        {"the closing of connections": partial(soak, length=GLANCE, leaks=True)},
    ),
)
