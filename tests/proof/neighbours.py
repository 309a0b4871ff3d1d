"""One job misbehaves among others that a worker has fetched ahead.

A supervisor replaces workers that die or fall silent. The job kills its process, keeps the interpreter's lock
for ever, or takes all memory. With ``threads`` the whole worker goes with it, with ``processes`` its own
child only. It ends as a dead letter when its budget is spent, and alone: the others are done.
"""

from __future__ import annotations

import http.client
import random
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from redrive.transports import Delivery, Entry
from redrive.transports.contract_transport import ContractTransport
from redrive.worker.settings import EXIT_RECYCLE
from tests.database import free_port, wait_for
from tests.proof.nursery import ForkedServer, Nursery
from tests.proof.places import Place, kind_of, place
from tests.proof.runs import Found, Proof
from tests.system.application import Application, WorkerProcess, dead, left, runs
from tests.system.servers import SECONDS

RETRIES = 2
KINDS = ("die", "seize", "leak")
EXECUTORS = ("threads", "processes")
NEIGHBOURS = {"die": 100, "seize": 30, "leak": 30}
LEASE_SECONDS = 3
LEASE_SECONDS_MAX = 5  # where nothing else ends it: a child's lease is extended while it is stuck
MEMORY_CAP_BYTES = 80 << 20
SILENT_PROBES = 3  # in a row, of a second each
CASE_SECONDS = 4 * SECONDS
AT_ONCE = {"base_seconds": 0, "max_seconds": 0}


@dataclass
class Case:
    """One misbehaving job of ``kind`` among its neighbours, on a queue and a database of its own."""

    server: ForkedServer
    application: Application
    folder: Path
    kind: str
    executor: str
    chance: random.Random

    @property
    def queue(self) -> str:
        """Its queue."""
        return f"{self.kind}-{self.executor}"

    def run(self) -> Found:
        """Play it to its end, and judge."""
        found = Found()
        with closing(self.server.client()) as client:
            policy: dict[str, object] = {"max_retries": RETRIES, "retry_policy": AT_ONCE}
            if self.kind == "seize":
                policy["max_lease_seconds"] = LEASE_SECONDS_MAX
            client.call("queue.create", {"name": self.queue, **policy})
            keys = [f"job:{number}" for number in range(NEIGHBOURS[self.kind])]
            entries = [Entry(payload=1, job_key=key) for key in keys]
            entries.insert(
                self.chance.randrange(len(keys)), Entry(payload={"do": self.kind}, job_key="poison")
            )
            client.publish(self.queue, entries)
            self.supervise(client, found)
            self.judge(client, keys, found)
        found.count("poisons")
        found.count(f"poisons: {self.kind} in {self.executor}")
        return found

    def supervise(self, client: ContractTransport, found: Found) -> None:
        """Start a worker for each that ended or does not answer its probe, until the queue is empty."""
        for _ in range(2 * (RETRIES + 1) + 1):
            port = free_port()
            options = {
                "queue": self.queue,
                "executor": self.executor,
                "concurrency": 2 if self.executor == "processes" else self.chance.randint(1, 6),
                "prefetch": 120,
                "visibility_timeout": LEASE_SECONDS,
                "health_port": port,
                "health_host": "127.0.0.1",
                "memory_cap_bytes": MEMORY_CAP_BYTES,
            }
            with WorkerProcess(self.server, self.application, self.folder, options, TEST_NOTES="1") as worker:
                silent = Silence(port)
                wait_for(
                    lambda: not worker.alive() or left(client, self.queue) == 0 or silent(),  # noqa: B023
                    CASE_SECONDS,
                    f"the end of {self.queue} in one way or another",
                )
                done = left(client, self.queue) == 0 and worker.alive()
                if not worker.alive():
                    wanted = {"die": -signal.SIGKILL, "leak": EXIT_RECYCLE}.get(self.kind)
                    found.expect(
                        worker.wait() == wanted, f"{self.queue}: a worker's exit was {worker.wait()}"
                    )
            found.count("workers replaced", int(not done))
            if done:
                return
        found.expect(False, f"{self.queue}: {2 * (RETRIES + 1) + 1} workers were not enough")

    @property
    def reasons(self) -> set[str]:
        """Why it may be dead: lost with its worker or to the lease's cap, or reported by who outlived it."""
        if self.kind == "leak" and self.executor == "threads":
            return {"max_attempts", "lease_expired"}  # a starved worker may be too slow to report it
        lost = self.executor == "threads" or self.kind == "seize"
        return {"lease_expired" if lost else "max_attempts"}

    def judge(self, client: ContractTransport, keys: list[str], found: Found) -> None:
        """The poison alone is dead, after its whole budget; each neighbour is done, soon."""
        letters = dead(client, self.queue)
        found.expect(set(letters) == {"poison"}, f"{self.queue}: dead are {sorted(letters)}")
        for letter in letters.values():
            why = f"{self.queue}: {letter['reason']} after {letter['attempt']}"
            found.expect(letter["reason"] in self.reasons, why)
            found.expect(letter["attempt"] == RETRIES + 1, why)
        effects = self.application.effects()
        found.expect(effects == dict.fromkeys(keys, 1), f"{self.queue}: {sum(effects.values())} effects")
        attempts = max(run["attempt"] for run in runs(self.folder) if run["key"] != "poison")
        found.at_worst("attempts of a neighbour", attempts)
        found.expect(attempts <= 2, f"{self.queue}: a neighbour was begun at its attempt {attempts}")


class Silence:
    """Whether a process has not answered some probes in a row, after it once did."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._missed = -1

    def __call__(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=1)
        with closing(connection), suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                self._missed = 0
                return False
        if self._missed >= 0:
            self._missed += 1
        return self._missed >= SILENT_PROBES


def cases(server: ForkedServer, where: Place, seed: int) -> list[Callable[[], Found]]:
    """Every kind with every executor; on SQLite each has its own database."""
    made: list[Callable[[], Found]] = []
    for kind in KINDS:
        for executor in EXECUTORS:
            folder = where.folder / f"{kind}-{executor}"
            folder.mkdir()
            application = Application(f"sqlite:///{folder / 'application.db'}")
            chance = random.Random(f"{seed} {kind} {executor}")
            made.append(Case(server, application, folder, kind, executor, chance).run)
    return made


def poisons(seed: int) -> Found:
    """One round on the store whose turn it is: all cases at once."""
    found = Found()
    with (
        Nursery() as nursery,
        place(kind_of(seed)) as where,
        ForkedServer(nursery, where.storage) as server,
        ThreadPoolExecutor(len(KINDS) * len(EXECUTORS)) as pool,
    ):
        for played in [pool.submit(case) for case in cases(server, where, seed)]:
            found.add(played.result())
    return found


def together(seed: int) -> Found:
    """The control: a consumer that collects suspects before it runs them, and dies, takes them all along."""
    found, queue = Found(), "together"
    with (
        Nursery() as nursery,
        place("sqlite") as where,
        ForkedServer(nursery, where.storage) as server,
        closing(server.client()) as client,
    ):
        client.call("queue.create", {"name": queue, "max_retries": RETRIES, "retry_policy": AT_ONCE})
        client.publish(queue, [Entry(payload=1, job_key=f"job:{number}") for number in range(4)])
        for _ in range(RETRIES + 1):
            held: list[Delivery] = []
            while len(held) < 4:
                held += client.consume(
                    queue, max_messages=10, visibility_timeout=1, wait_seconds=5, consumer_id="greedy"
                ).messages
            wait_for(lambda: leased(client, queue) == 0, SECONDS, "the leases to end")
        for key in sorted(dead(client, queue)):
            found.expect(False, f"{key} is dead, and did nothing")
    return found


def leased(client: ContractTransport, queue: str) -> int:
    """How many messages of ``queue`` are leased."""
    return int(client.call("queue.stats", {"queue": queue})["leased"])


PROOFS = (
    Proof(
        "neighbours",
        "A job that kills, blocks or starves its process is dead when its budget is spent, and it alone.",
        "poisons",
        600,
        poisons,
        {"suspects alone": together},
    ),
)
