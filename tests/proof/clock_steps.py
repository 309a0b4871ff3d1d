"""The wall clock of a node, of its database or of a worker is stepped in the middle of leases.

Each step is played on a server of its own, all steps at once. One consumer keeps its lease, one is silent,
one message backs off, one is delayed, consumers wait in long polls, and a worker is in a job while its own
clock is stepped the other way.
"""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from redrive.domain.errors import RedriveError
from redrive.transports import Delivery, Entry
from redrive.transports.contract_transport import ContractTransport
from tests.database import wait_for
from tests.proof.places import kind_of, place
from tests.proof.runs import Found, Proof
from tests.system import clocks
from tests.system.application import QUEUE, Application, WorkerProcess, connect, dead, left, runs
from tests.system.servers import SECONDS, ServerProcess

HOUR_MS = 3_600_000
STEPS = {
    "+1 s": 1_000,
    "-1 s": -1_000,
    "+1 h": HOUR_MS,
    "-1 h": -HOUR_MS,
    "+1 day": 24 * HOUR_MS,
    "-1 day": -24 * HOUR_MS,
}
LEASE_SECONDS = 6.0
DELAY_SECONDS = 600.0
CLOSE_SECONDS = 5.0  # how far a step may move the end of a lease
TICK_SECONDS, SLACK_SECONDS = 1.0, 3.0  # the reaper's pace; a busy machine
POLL_SECONDS = 20.0
PACE_SECONDS = 0.5
NOW = "floor(extract(epoch from clock_timestamp()) * 1000)::bigint"


@dataclass
class Stepped:
    """One server whose clock is stepped by ``ms``, and what is found."""

    name: str
    ms: int
    kind: str
    storage: str
    folder: Path
    found: Found = field(default_factory=Found)
    begun: set[str] = field(default_factory=set)
    stepped_at: float = 0.0

    def run(self, *, forged: bool = False) -> Found:
        """Everything at once around the step. ``forged``: the liveness tick hides it."""
        file = self.folder / "node-clock"
        with (
            ServerProcess(self.storage, TEST_CLOCK_FILE=str(file)) as server,
            closing(server.client()) as client,
            ThreadPoolExecutor(8) as pool,
        ):
            stepped = threading.Event()
            again = {"base_seconds": LEASE_SECONDS, "max_seconds": LEASE_SECONDS, "jitter": False}
            policies: dict[str, dict[str, object]] = {
                "kept": {"max_retries": 0},
                "silent": {"retry_policy": {"base_seconds": 0, "max_seconds": 0}},
                "backoff": {"retry_policy": again},
                "waiting": {},
                QUEUE: {"max_retries": 0},
            }
            for queue, policy in policies.items():
                client.call("queue.create", {"name": queue, **policy})
                if queue != "waiting":
                    client.publish(queue, [Entry(payload={"do": "hold"}, job_key=queue)])
            with self.worker(server) as worker:
                wait_for(lambda: runs(self.folder / "worker"), SECONDS, "the worker to have its job")
                playing = [self.kept, self.silent, self.backing_off, self.waiting]
                if self.ms > DELAY_SECONDS * 1000:
                    playing.append(self.delayed)
                parts: list[Future[None]] = [pool.submit(part, client, stepped) for part in playing]
                wait_for(lambda: len(self.begun) == len(parts), SECONDS, "all to be under way")
                self.stepped_at = time.monotonic()
                (self.forge if forged else self.step)(server, file)
                clocks.step(self.folder / "worker-clock", -self.ms)
                stepped.set()
                for part in parts:
                    part.result()
                self.worked(client, worker)
        self.found.count("steps")
        self.found.count(f"steps of {self.name} on {self.kind}")
        return self.found

    def step(self, server: ServerProcess, file: Path) -> None:
        """Node and database, at once."""
        if self.kind == "postgres":
            with closing(connect(self.storage)) as connection:
                connection.execute(
                    "create or replace function redrive.redrive_now_ms() returns bigint language sql "
                    f"volatile as $$ select {NOW} + {self.ms} $$"
                )
                connection.commit()
        clocks.step(file, self.ms)

    def forge(self, server: ServerProcess, file: Path) -> None:
        """The control's step: the tick says that nothing happened. SQLite only."""
        wait_for(lambda: self.forged(server), SECONDS, "a stop between two transactions")
        clocks.step(file, self.ms)
        server.send(signal.SIGCONT)

    def forged(self, server: ServerProcess) -> bool:
        """Stop the server and change its tick; False, and it goes on, when it was stopped as it wrote."""
        server.send(signal.SIGSTOP)
        try:
            with closing(connect(self.storage)) as connection:
                connection.execute("pragma busy_timeout = 100")
                connection.execute(f"update clock set tick_ms = tick_ms + {self.ms}")
                connection.commit()
        except sqlite3.OperationalError:
            server.send(signal.SIGCONT)
            return False
        return True

    def worker(self, server: ServerProcess) -> WorkerProcess:
        """A worker with a clock of its own, which will hold its job for longer than its lease."""
        application = Application(f"sqlite:///{self.folder / 'application.db'}")
        options = {"visibility_timeout": LEASE_SECONDS / 2, "concurrency": 1}
        clock = {"TEST_CLOCK_FILE": str(self.folder / "worker-clock")}
        folder = self.folder / "worker"
        return WorkerProcess(server, application, folder, options, TEST_NOTES="1", **clock)

    def worked(self, client: ContractTransport, worker: WorkerProcess) -> None:
        """The worker ends its job: it was begun once."""
        (self.folder / "worker" / "free").touch()
        wait_for(lambda: left(client) == 0, SECONDS, "the worker's job to end")
        begun = [run["attempt"] for run in runs(self.folder / "worker")]
        self.found.expect(begun == [1], f"{self.name}: the worker's job was begun at attempts {begun}")
        self.found.expect(worker.stop() == 0, "the worker did not stop with code 0")

    def kept(self, client: ContractTransport, stepped: threading.Event) -> None:
        """A lease that is extended outlives the step, for more than its length."""
        [held] = consume(client, "kept")
        self.begun.add("kept")
        pace, ends_at = threading.Event(), 0.0  # never set
        while not ends_at or time.monotonic() < ends_at:
            if stepped.is_set() and not ends_at:
                ends_at = time.monotonic() + LEASE_SECONDS + TICK_SECONDS
            pace.wait(PACE_SECONDS)
            try:
                client.extend("kept", held.message_id, held.receipt_handle, LEASE_SECONDS)
            except RedriveError as refusal:
                self.found.expect(False, f"{self.name}: a kept lease was lost: {refusal}")
                break
        [acked] = client.ack("kept", [(held.message_id, held.receipt_handle)])
        self.found.expect(acked is True, f"{self.name}: the ack of a kept lease: {acked}")
        self.found.expect(dead(client, "kept") == {}, f"{self.name}: a kept lease spent its budget")

    def silent(self, client: ContractTransport, stepped: threading.Event) -> None:
        """A lease that nobody extends ends at its monotonic time."""
        began = time.monotonic()
        consume(client, "silent")
        self.begun.add("silent")
        self.due(client, "silent", began, previous="lost")

    def backing_off(self, client: ContractTransport, stepped: threading.Event) -> None:
        """So does a backoff."""
        [first] = consume(client, "backoff")
        began = time.monotonic()
        client.nack("backoff", first.message_id, first.receipt_handle)
        self.begun.add("backoff")
        self.due(client, "backoff", began, previous="nack")

    def due(self, client: ContractTransport, queue: str, began: float, *, previous: str) -> None:
        """The next delivery, which a poll from before the step waits for, is at its time."""
        [second] = consume(client, queue)
        took = time.monotonic() - began
        off = took - LEASE_SECONDS
        name = "seconds early" if off < 0 else "seconds late"
        self.found.at_worst(f"{name}: {queue}", abs(off))
        late = CLOSE_SECONDS + TICK_SECONDS + SLACK_SECONDS
        self.found.expect(-CLOSE_SECONDS < off < late, f"{self.name}: {queue} after {took:.1f} s")
        self.found.expect(second.previous == previous, f"{self.name}: {queue}: {second.previous}")
        self.found.expect(second.attempt == 2, f"{self.name}: {queue} at attempt {second.attempt}")

    def waiting(self, client: ContractTransport, stepped: threading.Event) -> None:
        """A poll from before the step is woken by a publish after it."""
        with ThreadPoolExecutor(1) as pool:
            polled = pool.submit(consume, client, "waiting")
            self.begun.add("waiting")
            assert stepped.wait(SECONDS)
            published_at = time.monotonic()
            client.publish("waiting", [Entry(payload=1)])
            self.woken("waiting", published_at, len(polled.result()))

    def delayed(self, client: ContractTransport, stepped: threading.Event) -> None:
        """Delays run on the wall clock: what a step made due is there for the poll that waits for it."""
        client.publish("delayed", [Entry(payload=1, delay_seconds=DELAY_SECONDS)])
        self.begun.add("delayed")
        messages = len(consume(client, "delayed"))
        self.woken("delayed", self.stepped_at, messages)

    def woken(self, queue: str, since: float, messages: int) -> None:
        """A poll had its message, soon."""
        took = time.monotonic() - since
        self.found.at_worst(f"seconds until a poll has its message: {queue}", took)
        soon = messages == 1 and took < SLACK_SECONDS
        self.found.expect(soon, f"{self.name}: {queue}: {messages} messages after {took:.1f} s")


def consume(client: ContractTransport, queue: str) -> list[Delivery]:
    """The next message, in one long poll."""
    return client.consume(
        queue,
        max_messages=1,
        visibility_timeout=LEASE_SECONDS,
        wait_seconds=POLL_SECONDS,
        consumer_id="consumer",
    ).messages


def steps(seed: int, names: list[str] | None = None, *, forged: bool = False) -> Found:
    """One round on the store whose turn it is: every step at once, each on a server of its own."""
    found = Found()
    with ExitStack() as places, ThreadPoolExecutor(len(STEPS)) as pool:
        where = places.enter_context(place("sqlite" if forged else kind_of(seed)))
        played = []
        for number, name in enumerate(names or STEPS):
            folder = where.folder / f"{number}"
            folder.mkdir()
            storage = f"sqlite:///{folder / 'queue.db'}"
            if where.database is not None:
                storage = places.enter_context(where.database.fresh_database())
            one = Stepped(name, STEPS[name], where.kind, storage, folder)
            played.append(pool.submit(one.run, forged=forged))
        for step in played:
            found.add(step.result())
    return found


PROOFS = (
    Proof(
        "clock-steps",
        "A step of a wall clock moves no lease's end by more than 5 s, and loses no wake-up and no budget.",
        "steps",
        600,
        steps,
        {"the liveness tick": lambda seed: steps(seed, ["+1 h"], forged=True)},
    ),
)
