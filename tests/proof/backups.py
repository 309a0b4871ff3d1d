"""``redrive db backup`` beside producers and consumers, again and again; each copy is served and judged.

What must be in a copy: every message that was acknowledged to its producer before the backup began and whose
ack was not on its way before it ended. What must not: one whose ack was answered before the backup began, and
none twice, whatever its state. In between the copy may show either.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from redrive.domain.errors import RedriveError
from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from redrive.transports.port import Unreachable
from redrive.transports.rest import open_rest
from tests.cli.program import Program
from tests.database import wait_for
from tests.proof.runs import Found, Proof
from tests.system.application import QUEUE
from tests.system.servers import KEY, SECONDS, ServerProcess

BACKUPS = 2  # in a round
PRODUCERS, CONSUMERS = 3, 2
STOCK = 2_000  # messages from the beginning, so that a copy takes several steps
BODY = "x" * 1_500
Copy = Callable[["Store", str], None]


class Served(ServerProcess):
    """``redrive serve`` with a folder for backups beside its file."""

    def _command(self) -> list[str]:
        place = ["--storage", self.storage, "--host", "127.0.0.1", "--port", str(self.port)]
        folder = str(Path(self.storage.removeprefix("sqlite:///")).parent / "backups")
        return [sys.executable, "-m", "redrive", "serve", *place, "--backup-directory", folder]


class Store:
    """A served store and everybody who works on it; what they know is in sets of job keys."""

    def __init__(self, folder: Path, server: Served) -> None:
        self.folder = folder
        self.server = server
        self.program = Program(folder, {"url": server.url, "api_key": KEY})
        self.published: set[str] = set()
        self.acking: set[str] = set()  # their acks are, or were, on the way
        self.acked: set[str] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._failed: list[BaseException] = []

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Producers and consumers for the length of the block; raises what went wrong with one of them."""
        threads = [
            *(threading.Thread(target=self._run, args=(self._produce, f"p{n}")) for n in range(PRODUCERS)),
            *(threading.Thread(target=self._run, args=(self._consume, f"c{n}")) for n in range(CONSUMERS)),
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join(SECONDS)
        if self._failed:
            raise self._failed[0]

    def known(self) -> tuple[set[str], set[str], set[str]]:
        """Copies of the three sets, of one moment."""
        with self._lock:
            return set(self.published), set(self.acking), set(self.acked)

    def _run(self, work: Callable[[ContractTransport, str], None], name: str) -> None:
        try:
            with closing(open_rest(self.server.url, KEY)) as client:
                work(client, name)
        except BaseException as error:
            self._failed.append(error)
            raise

    def stock(self, client: ContractTransport) -> None:
        """What is there from the beginning."""
        self._publish(client, [f"stock:{number}" for number in range(STOCK)])

    def _publish(self, client: ContractTransport, keys: list[str]) -> None:
        answers = client.publish(QUEUE, [Entry(payload=BODY, job_key=key) for key in keys])
        assert not any(isinstance(answer, RedriveError) for answer in answers)
        with self._lock:
            self.published.update(keys)

    def _produce(self, client: ContractTransport, name: str) -> None:
        number = 0
        while not self._stopped.is_set():
            self._publish(client, [f"{name}:{number + n}" for n in range(10)])
            number += 10

    def _consume(self, client: ContractTransport, name: str) -> None:
        while not self._stopped.is_set():
            leased = client.consume(
                QUEUE, max_messages=10, visibility_timeout=60, wait_seconds=0.2, consumer_id=name
            )
            keys = {message.job_key for message in leased.messages}
            with self._lock:
                self.acking |= keys
            done = client.ack(QUEUE, [(one.message_id, one.receipt_handle) for one in leased.messages])
            assert all(one is True for one in done), done
            with self._lock:
                self.acked |= keys


def by_command(store: Store, name: str) -> None:
    """As an operator does it."""
    done = store.program("db", "backup", name)
    assert done.code == 0, done.err


def by_copying(store: Store, name: str) -> None:
    """The control: the file as it lies there, which leaves out what is still in the write-ahead log."""
    shutil.copy(store.folder / "queue.db", store.folder / "backups" / name)


def back_up(seed: int, *, copy: Copy = by_command, backups: int = BACKUPS) -> Found:
    """One round: so many backups of one store under load, each served and looked through."""
    found, luck = Found(), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="redrive-proof-") as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "backups").mkdir()
        server = stack.enter_context(Served(f"sqlite:///{folder / 'queue.db'}"))
        store = Store(folder, server)
        with closing(server.client()) as client:
            store.stock(client)
        taken = []
        with store.at_work():
            for number in range(backups):
                goal = len(store.acked) + luck.randint(20, 200)
                wait_for(lambda: len(store.acked) >= goal, SECONDS, "work between backups")  # noqa: B023
                before = store.known()
                copy(store, f"{number}.db")
                taken.append((before, store.known()))
        server.stop()
        for number, (before, after) in enumerate(taken):
            _judge(found, folder / "backups" / f"{number}.db", before, after)
            found.count("backups")
    return found


def _judge(
    found: Found, path: Path, before: tuple[set[str], set[str], set[str]], after: tuple[set[str], ...]
) -> None:
    must = before[0] - after[1]
    found.count("messages that must be in a copy", len(must))
    try:
        with Served(f"sqlite:///{path}") as served, closing(served.client()) as client:
            held = list(_held(client))
            found.count("messages in copies", len(held))
    except (AssertionError, RedriveError, Unreachable) as error:
        found.expect(False, f"{path.name} cannot be served: {error}")
        return
    checked = Program(path.parent)("db", "check", "--storage", f"sqlite:///{path}")
    found.expect(checked.code == 0, f"{path.name} is not sound: {checked.out[:300]} {checked.err[:300]}")
    lost, undone = must - set(held), set(held) & before[2]
    found.expect(not lost, f"{path.name}: {len(lost)} acknowledged publishes are missing")
    found.expect(not undone, f"{path.name}: {len(undone)} were acked before the backup and are there")
    found.expect(len(held) == len(set(held)), f"{path.name}: {len(held) - len(set(held))} are there twice")


def _held(client: ContractTransport) -> Iterator[str]:
    """The key of every message that a store holds, whatever its state."""
    cursor: str | None = None
    while True:
        asked: dict[str, Any] = {"queue": QUEUE, "limit": 1_000} | ({"cursor": cursor} if cursor else {})
        page = client.call("queue.messages", asked)
        yield from (item["job_key"] for item in page["items"])
        cursor = page["next_cursor"]
        if cursor is None:
            return


PROOFS = (
    Proof(
        "backups",
        "A backup under load restores to a state of the store: no message is acked and ready, none is lost.",
        "backups",
        300,
        back_up,
        {"a copy by SQLite's own steps": partial(back_up, copy=by_copying, backups=1)},
    ),
)
