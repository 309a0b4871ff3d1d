"""The power of a real disk fails under a server at work, on SQLite and on PostgreSQL.

A round is the life of one store on a disk of its own (:mod:`tests.proof.cut_disk`). Producers publish, a
consumer acks; at random moments the disk's image is copied. Each copy is mounted as after a cut, opened, and
compared with what had been answered before it was taken; then a server goes on over it.
"""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redrive.compose import open_engine
from redrive.domain.errors import RedriveError
from redrive.storage.port import Lost, Reader
from redrive.transports import Entry
from redrive.transports.port import Unreachable
from redrive.transports.rest import open_rest
from tests.database import PostgresServer, wait_for
from tests.proof.careless import CarelessServer
from tests.proof.cut_disk import CutDisk, cut_disk_missing
from tests.proof.nursery import ForkedServer, Nursery
from tests.proof.places import kind_of, kinds
from tests.proof.runs import Found, Proof
from tests.system.alongside import Alongside
from tests.system.application import QUEUE
from tests.system.load import Load
from tests.system.servers import KEY, SECONDS

CUTS = 12  # in a life
CONTROL_CUTS = 4
PUBLISHES_BETWEEN = (5, 120)
PATIENT, HASTY, PACE_SECONDS = 2, 2, 0.0
HELD_SECONDS = 600.0  # what is leased and not acked stays away for longer than a life
DATA, FILE = "data", "queue.db"


class CutPostgres(PostgresServer):
    """PostgreSQL whose data are on ``folder``; ``careless`` are settings on top of the safe ones."""

    def __init__(self, folder: Path, *careless: str) -> None:
        super().__init__()
        self.data = folder / DATA
        self._careless = careless

    def _command(self) -> list[str]:
        return [*super()._command(), *(f"--{setting}" for setting in self._careless)]

    def over(self, folder: Path) -> None:
        """Start on the data in ``folder``, as after a crash."""
        self.data = folder / DATA
        self.start()

    def stop(self) -> None:
        """End it at once; unlike a kill, that leaves no shared memory behind."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._reap()

    def damage(self) -> list[str]:
        """What PostgreSQL's own check finds in our tables and indexes."""
        reached = ["--host=127.0.0.1", f"--port={self.port}", "--username=postgres", "--database=postgres"]
        check = [str(self._bin / "pg_amcheck"), *reached, "--schema=redrive"]
        ran = subprocess.run(
            [*check, "--install-missing", "--heapallindexed"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return [] if ran.returncode == 0 else [(ran.stdout + ran.stderr)[:300]]


class Settler(Alongside):
    """A consumer in a thread of its own that acks most of what it leases, and remembers what it was told.

    ``asked``: job keys whose ack was sent; ``acked``: those whose ack was answered.
    """

    def __init__(self, url: str, luck: random.Random) -> None:
        super().__init__("settler")
        self.asked: set[str] = set()
        self.acked: set[str] = set()
        self._url, self._luck = url, luck

    def work(self) -> None:
        """Until ``stopped``: lease, and ack most of it."""
        with closing(open_rest(self._url, KEY)) as client:
            while not self.stopped.is_set():
                with suppress(RedriveError, Unreachable):
                    lease = client.consume(
                        QUEUE,
                        max_messages=10,
                        visibility_timeout=HELD_SECONDS,
                        wait_seconds=0.2,
                        consumer_id="settler",
                    )
                    chosen = [one for one in lease.messages if self._luck.random() < 0.7]
                    self.asked.update(one.job_key for one in chosen)
                    answers = client.ack(QUEUE, [(one.message_id, one.receipt_handle) for one in chosen])
                    self.acked.update(
                        one.job_key for one, answer in zip(chosen, answers, strict=True) if answer is True
                    )


@dataclass(frozen=True)
class Cut:
    """A copy of the image, and what had been told before it was begun; ``asked``: until it was done."""

    image: Path
    acknowledged: frozenset[str]
    acked: frozenset[str]
    asked: frozenset[str]

    def compare(self, there: Counter[str], found: Found, where: str) -> None:
        """What must be there is, and what may not be is not."""
        wrong = {
            "acknowledged publishes are lost": self.acknowledged - self.asked - set(there),
            "acked messages are back": self.acked & set(there),
            "messages are there twice": {key for key, times in there.items() if times > 1},
        }
        for what, keys in wrong.items():
            found.expect(not keys, f"{where}: {len(keys)} {what}, such as {min(keys, default='')}")
        found.count("acknowledged publishes looked for", len(self.acknowledged - self.asked))
        found.count("acked messages looked for", len(self.acked))


@dataclass
class Life:
    """One store on one disk. ``careless``: the setting that is off, ``name=value``, or nothing."""

    kind: str
    careless: str
    disk: CutDisk
    nursery: Nursery
    luck: random.Random
    found: Found
    postgres: CutPostgres | None = None

    def play(self, cuts: int) -> None:
        """Live, be cut, and look at what each cut left."""
        with ExitStack() as stack:
            if self.kind == "postgres":
                settings = [self.careless] if self.careless else []
                self.postgres = stack.enter_context(CutPostgres(self.disk.folder, *settings))
                self.disk.flush()  # the empty cluster was made without
            for number, cut in enumerate(self.live(cuts)):
                where = f"{self.kind}, cut {number}"
                with self.disk.after(cut.image) as folder:
                    self.look(folder, cut, where)
                self.found.count("cuts")
                self.found.count(f"cuts {self.kind}")

    def live(self, cuts: int) -> list[Cut]:
        """The cuts of a life under load."""
        taken: list[Cut] = []
        with (
            self.server(self.disk.folder) as server,
            Load(server.url, patient=PATIENT, hasty=HASTY, pace=PACE_SECONDS) as load,
            Settler(server.url, self.luck) as settler,
        ):
            for number in range(cuts):
                grown(settler.acked, 1, f"an ack before cut {number}")
                more = self.luck.randint(*PUBLISHES_BETWEEN)
                grown(load.acknowledged, more, f"publishes before cut {number}")
                if self.careless and not number:
                    self.disk.flush()  # as time does: only what is answered from here on may be lost
                    continue
                before = frozenset(load.acknowledged), frozenset(settler.acked)
                taken.append(Cut(self.disk.cut(), *before, frozenset(settler.asked)))
        if self.postgres is not None:
            self.postgres.stop()
        return taken

    def server(self, folder: Path) -> ForkedServer:
        """A server over the store in ``folder``."""
        if self.postgres is None and self.careless:
            server = CarelessServer(self.nursery, self.storage(folder))
            server._variables = {"TEST_SYNCHRONOUS": self.careless.partition("=")[2]}
            return server
        return ForkedServer(self.nursery, self.storage(folder))

    def storage(self, folder: Path) -> str:
        """The URL of the store in ``folder``."""
        return self.postgres.url() if self.postgres is not None else f"sqlite:///{folder / FILE}"

    def look(self, folder: Path, cut: Cut, where: str) -> None:
        """The store opens, is intact, holds what it must, and takes work again."""
        try:
            with self.opened(folder) as engine:
                problems = engine.check() + self.damage()
                self.found.expect(not problems, f"{where}: damaged: {problems[:2]}")
                cut.compare(engine.read(_job_keys), self.found, where)
            with self.server(folder) as server, closing(server.client()) as client:
                client.publish("after", [Entry(payload=1, job_key="after")])
                lease = client.call("queue.consume", {"queue": "after"})
                self.found.expect(len(lease["messages"]) == 1, f"{where}: a publish afterwards is not there")
        except (Lost, AssertionError) as error:  # the latter when a server does not start over it
            self.found.expect(False, f"{where}: not readable: {error}")
        finally:
            if self.postgres is not None:
                self.postgres.stop()

    @contextmanager
    def opened(self, folder: Path) -> Iterator[Any]:
        """The store's engine."""
        if self.postgres is not None:
            self.postgres.over(folder)
        engine = open_engine(self.storage(folder))
        try:
            yield engine
        finally:
            engine.close()

    def damage(self) -> list[str]:
        """What PostgreSQL's own check finds; SQLite's is part of the engine's."""
        return self.postgres.damage() if self.postgres is not None else []


def grown(told: set[str], more: int, what: str) -> None:
    """Wait until the set has so many more."""
    enough = len(told) + more
    wait_for(lambda: len(told) >= enough, SECONDS, what)


def _job_keys(reader: Reader) -> Counter[str]:
    queue = reader.queue(QUEUE)
    messages = [] if queue is None else reader.messages(queue, None, None, 0, 1_000_000)
    return Counter(one.facts.job_key for one in messages)


def power_cuts(seed: int, *, kind: str = "", careless: str = "", cuts: int = CUTS) -> Found:
    """One life, on the store whose turn it is unless it is told."""
    found = Found()
    with CutDisk() as disk, Nursery() as nursery:
        Life(kind or kind_of(seed), careless, disk, nursery, random.Random(seed), found).play(cuts)
    return found


def without(setting: str, kind: str) -> Callable[[int], Found]:
    """A control: a life with that setting."""
    return lambda seed: power_cuts(seed, kind=kind, careless=setting, cuts=CONTROL_CUTS)


CONTROLS = {
    "sqlite": ("synchronous=NORMAL", "synchronous=OFF"),
    "postgres": ("fsync=off", "synchronous_commit=off"),
}
PROOFS = (
    Proof(
        "power-cut-disk",
        "After a power cut of a real disk under load, SQLite and PostgreSQL are intact, nothing acknowledged "
        "is lost, and nothing acked is back.",
        "cuts",
        2_000,
        power_cuts,
        {setting: without(setting, kind) for kind in kinds() for setting in CONTROLS[kind]},
        missing=cut_disk_missing,
    ),
)
