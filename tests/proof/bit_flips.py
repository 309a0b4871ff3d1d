"""One flipped bit in a closed SQLite store: what is served afterwards is right, or it is not served.

The store holds messages in several queues and states. A bit of its main file is flipped (or of its log, in
the second proof), it is opened, and everything is read through the public operations: the lists, each message
by its id, and then leases until nothing comes any more. Nobody may be handed an id, job key, header or body
that was not published. A message that is not handed out must be a dead letter with the reason ``checksum``,
or an operation said by name that it cannot read, or the store's own check finds the damage.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from redrive.contract import shapes
from redrive.domain.errors import NotFound, RedriveError
from redrive.service import Service
from redrive.service.access import SYSTEM
from redrive.service.work import Read
from redrive.storage import commands as c
from redrive.storage.conformance import Clock
from redrive.storage.conformance.rig import Repeatable
from redrive.storage.execute import apply
from redrive.storage.port import Damaged, Lost
from redrive.storage.sqlite import SqliteEngine
from redrive.storage.values import StoredMessage
from tests.proof.medium import Image
from tests.proof.power_cut import STORE, workshop
from tests.proof.runs import Found, Proof
from tests.proof.workload import Oracle, Workload, agree, carry_out, write

FLIPS_A_ROUND = 50
PREPARED = 45
LOG = f"{STORE}-wal"
_PAGE = 100
_TURNS_MAX = 50  # of a list or of leases, in which damage may have made a circle
_STEPS = 14  # of 4 s: longer than any lease or backoff of the store

Seal = Callable[[bytes], bytes]


@dataclasses.dataclass(frozen=True)
class Published:
    """What a message is: nothing else may be served under its id."""

    job_key: str
    payload: bytes
    headers: bytes


@dataclasses.dataclass
class Store:
    """A store: its files when it was closed, its files with the log unfolded, and what is in it."""

    closed: Image
    logged: Image
    queues: list[str]
    published: dict[str, Published]
    there: set[str]  # of these, what has not been acknowledged, removed or cancelled
    now_ms: int


def prepared(folder: Path, seed: int) -> Store:
    """A store after some work."""
    luck, oracle = random.Random(seed), Oracle()
    source, workload = Repeatable(), Workload(oracle, luck)
    folder.mkdir()
    engine = SqliteEngine(folder / STORE, oracle.clock)
    published: dict[str, Published] = {}
    for act in itertools.chain([workload.first()], workload.acts(PREPARED)):
        wanted = oracle.do(act)
        agree(carry_out(engine, act, source), wanted)
        for stored in _stored(oracle):
            known = Published(stored.facts.job_key, stored.body, stored.headers or b"{}")
            published.setdefault(stored.facts.message_id, known)
    logged = {name: (folder / name).read_bytes() for name in (STORE, LOG)}
    engine.close()
    closed = {STORE: (folder / STORE).read_bytes()}
    shutil.rmtree(folder)
    there = {stored.facts.message_id for stored in _stored(oracle) if not stored.facts.cancelled}
    queues = [queue.name for queue in oracle.engine.read(lambda reader: reader.queue_page("", _PAGE))]
    return Store(closed, logged, queues, published, there, oracle.clock.now_ms)


def _stored(oracle: Oracle) -> list[StoredMessage]:
    found = oracle.engine.read(lambda reader: [reader.message(message_id) for message_id in oracle.ids])
    return [stored for stored in found if stored is not None]


class Visit:
    """A reader of everything.

    ``leased`` are the ids that were handed out rightly by a lease, ``checksum`` the dead letters of that
    reason, ``named`` the refusals, ``wrong`` what must not happen.
    """

    def __init__(self, engine: SqliteEngine, clock: Clock, store: Store) -> None:
        self._engine, self._clock = engine, clock
        self._store, self._queues = store, store.queues
        self._service = Service(engine)
        self.leased: set[str] = set()
        self.checksum: set[str] = set()
        self.named: list[str] = []
        self.wrong: list[str] = []

    def everything(self) -> None:
        """Lists, messages one by one, then leases until nothing comes any more, as time goes on."""
        for queue in self._queues:
            self._try(self._lists, queue)
            self._try(self._dead, queue)
        for message_id in sorted(self._store.there):
            self._try(self._shows, message_id)
        for _ in range(_STEPS):
            self._try(self._finds_queues)
            for queue in self._queues:
                self._try(self._leases, queue)
            self._clock.pass_seconds(4)
            self._try(self._do, c.Tick(), c.Expire())
        for queue in self._queues:
            self._try(self._dead, queue)

    def _finds_queues(self) -> None:
        """A lease that ends may make the first dead letter of its queue, and the place for it."""
        there = self._engine.read(lambda reader: reader.queue_page("", _PAGE))
        self._queues = list(dict.fromkeys([*self._queues, *(queue.name for queue in there)]))

    def _try(self, work: Callable[..., object], *arguments: Any) -> None:
        try:
            work(*arguments)
        except NotFound as error:  # says nothing about the disk, unless it does
            self.named += [str(error)] if "damaged on disk" in str(error) else []
        except (RedriveError, Lost, Damaged) as error:
            self.named.append(str(error))
        except Exception as error:
            self.wrong.append(f"without a name: {type(error).__name__}: {error}")

    def _ask(self, capability: str, request: Any) -> Any:
        work = self._service.prepare(capability, SYSTEM, request)
        if isinstance(work, Read):
            return work.run()
        return work.finish(self._do(work.command))

    def _do(self, *commands: c.Command) -> object:
        return self._engine.run(lambda tx: apply(tx, commands)).results[0]

    def _see(self, where: str, message_id: str, job_key: str, payload: object, headers: object) -> bool:
        told = (job_key, bytes(payload), bytes(headers))  # type: ignore[call-overload]
        wanted = self._store.published.get(message_id)
        right = wanted is not None and dataclasses.astuple(wanted) == told
        if not right:
            self.wrong.append(
                f"{where}: served {message_id} as {str(told)[:200]}, published {str(wanted)[:200]}"
            )
        return right

    def _lists(self, queue: str) -> None:
        cursor = None
        for _ in range(_TURNS_MAX):
            request = shapes.MessageList(queue=queue, cursor=cursor, limit=_PAGE)
            page = self._ask("queue.messages", request)
            for item in page.items:
                self._see("list", item.message_id, item.job_key, item.payload, item.headers)
            cursor = page.next_cursor
            if cursor is None:
                return

    def _shows(self, message_id: str) -> None:
        item = self._ask("queue.message", shapes.MessageGet(message_id=message_id))
        self._see("show", item.message_id, item.job_key, item.payload, item.headers)

    def _leases(self, queue: str) -> None:
        for _ in range(_TURNS_MAX):
            request = shapes.Consume(queue=queue, max_messages=_PAGE, visibility_timeout=30.0)
            messages = self._ask("queue.consume", request).messages
            if not messages:
                return
            for one in messages:
                if self._see("lease", one.message_id, one.job_key, one.payload, one.headers):
                    self.leased.add(one.message_id)
            self._do(c.Ack([(one.message_id, one.receipt_handle) for one in messages]))

    def _dead(self, queue: str) -> None:
        for item in self._ask("queue.dlq.list", shapes.DeadLetterList(queue=queue, limit=_PAGE)).items:
            if item.reason == "checksum":
                self.checksum.add(item.message_id)
            else:
                self._see("dead letters", item.message_id, item.job_key, item.payload, item.headers)


def flip(image: Image, name: str, bit: int) -> Image:
    """The image with this bit of the file flipped."""
    data = bytearray(image[name])
    data[bit // 8] ^= 1 << bit % 8
    return {**image, name: bytes(data)}


def look(folder: Path, image: Image, store: Store, where: str, found: Found, *, whole: bool = True) -> None:
    """Open the image, read everything, and judge; ``whole``: that nothing is missing without a word, too."""
    clock = Clock(store.now_ms)
    write(image, folder)
    problems: list[str] = []
    try:
        engine = SqliteEngine(folder / STORE, clock)
        try:
            visit = Visit(engine, clock, store)
            visit.everything()
            problems = engine.check()
        except (Lost, Damaged) as error:
            problems = [str(error)]
        finally:
            engine.close()
    except (Lost, Damaged, RedriveError):
        found.count("not opened, by name")
        return
    finally:
        shutil.rmtree(folder)
    for what in {told.split(":")[0]: told for told in visit.wrong}.values():  # one of a kind
        found.expect(False, f"{where}: {what}")
    missing = store.there - visit.leased - visit.checksum
    if not missing and not visit.checksum:
        found.count("unaffected" if not problems else "unaffected, found by the check")
    elif visit.checksum:
        found.count("dead-lettered as checksum")
    elif visit.named:
        found.count("refused by name")
    else:
        found.count("found by the check" if problems else "missing")
        found.expect(bool(problems) or not whole, f"{where}: {len(missing)} messages are gone without a word")


def flips(
    seed: int,
    number: int,
    name: str,
    kept: Callable[[Store], Image],
    *,
    whole: bool = True,
    seal: Seal = bytes,
) -> Found:
    """So many flips in the file ``name`` of one store, each in the image that was ``kept`` of it."""
    found, luck = Found(), random.Random(seed)
    with workshop() as folder:
        store = prepared(folder / "store", seed)
        for _ in range(number):
            bit = luck.randrange(8 * len(kept(store)[name]))
            image = flip(kept(store), name, bit)
            image[name] = seal(image[name])
            found.count("flips")
            where = f"bit {bit % 8} of byte {bit // 8} of {name}"
            look(folder / "flipped", image, store, where, found, whole=whole)
    return found


def bit_flips(seed: int, number: int = FLIPS_A_ROUND) -> Found:
    """So many flips in the main file of a closed store."""
    return flips(seed, number, STORE, lambda store: store.closed)


def log_flips(seed: int, number: int = FLIPS_A_ROUND, seal: Seal = bytes) -> Found:
    """So many flips in the log of one store: SQLite ends the log before a damaged frame.

    What stood behind it is gone, and nothing can say so: the claim here is only that nothing wrong is served.
    """
    return flips(seed, number, LOG, lambda store: store.logged, whole=False, seal=seal)


def sealed(log: bytes) -> bytes:
    """The log with SQLite's own checksums made right again: what it would be worth without them."""
    made = bytearray(log)
    order = ">" if made[3] & 1 else "<"
    page = int.from_bytes(made[8:12], "big")
    sums = _summed((0, 0), bytes(made[:24]), order)
    struct.pack_into(">2I", made, 24, *sums)
    for at in range(32, len(made) - page - 23, page + 24):
        sums = _summed(sums, bytes(made[at : at + 8] + made[at + 24 : at + 24 + page]), order)
        struct.pack_into(">2I", made, at + 16, *sums)
    return bytes(made)


def _summed(sums: tuple[int, int], data: bytes, order: str) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for left, right in zip(words[::2], words[1::2], strict=True):
        first = (first + left + second) & 0xFFFFFFFF
        second = (second + right + first) & 0xFFFFFFFF
    return first, second


@contextmanager
def _no_checksums() -> Iterator[None]:
    with (
        mock.patch("redrive.storage.execute.lease.is_sound", return_value=True),
        mock.patch("redrive.service.looking.sound", return_value=True),
    ):
        yield


def _without_checksums(seed: int) -> Found:
    with _no_checksums():
        return bit_flips(seed)


def _without_any_checksums(seed: int) -> Found:
    with _no_checksums():
        return log_flips(seed, 80, sealed)  # most of a log is no body


PROOFS = (
    Proof(
        name="bit-flips",
        claim="Whatever bit of the SQLite file flips, no wrong id, job key, header or body is served, and "
        "what is not served is a dead letter of reason checksum, refused by name, or found by the check.",
        unit="flips",
        long=20_000,
        round=bit_flips,
        controls={"checksums are not compared": _without_checksums},
    ),
    Proof(
        name="log-flips",
        claim="Whatever bit of the SQLite log flips, no wrong id, job key, header or body is served.",
        unit="flips",
        long=10_000,
        round=log_flips,
        controls={"checksums are not compared, SQLite's either": _without_any_checksums},
    ),
)
