"""The n-th call of SQLite fails, in every operation: what is answered with success is there, the rest named.

A case: a store with messages in every state is opened through the VFS, one operation is done, and in it the
n-th read, write, sync, truncate or open fails, once or from then on. A failed sync writes a random part, and
the kernel then takes the rest for written (as Linux does). The error that comes out says what became of the
command: nothing, or unknown. Then the disk is well again, and the store must work, or say by name why not. At
the end it is closed, killed, or the power is cut, and opened again as a service would open it.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import apsw

from redrive.storage import commands as c
from redrive.storage.conformance.rig import Repeatable
from redrive.storage.execute import apply
from redrive.storage.port import DiskFull, Lost, UnknownOutcome
from redrive.storage.sqlite import SqliteEngine
from redrive.storage.sqlite.log import Log
from tests.proof.medium import Image, Medium
from tests.proof.power_cut import CHECKPOINT_PAGES, NOTHING_KNOWN, STORE, workshop
from tests.proof.runs import Found, Proof
from tests.proof.vfs import Call, Disk, Fault, Kind
from tests.proof.workload import Act, Oracle, Workload, agree, carry_out, difference, shown, write

NTH_MAX = 60
PREPARED = 16  # acts in the store that a case begins with
ACTS = (
    "publish", "lease", "ack", "nack", "dead-letter", "redrive", "expire", "retention", "prune", "purge",
    "batch",
)  # fmt: skip
PLACES = (*ACTS, "checkpoint", "migration", "open", "close", "read")
ENDS = ("closed", "killed", "power cut", "killed, power cut later")
FAULTS: dict[str, tuple[Kind, Fault]] = {
    "EIO at a write": ("write", Fault(apsw.SQLITE_IOERR_WRITE)),
    "ENOSPC at a write": ("write", Fault(apsw.SQLITE_FULL)),
    "a short write": ("write", Fault(apsw.SQLITE_FULL, kept=1_000)),
    "EIO at a sync": ("sync", Fault(apsw.SQLITE_IOERR_FSYNC)),
    "EIO at a read": ("read", Fault(apsw.SQLITE_IOERR_READ)),
    "EIO at a truncate": ("truncate", Fault(apsw.SQLITE_IOERR_TRUNCATE)),
    "EIO at a size": ("size", Fault(apsw.SQLITE_IOERR_FSTAT)),
    "EMFILE at an open": ("open", Fault(apsw.SQLITE_CANTOPEN)),
}


@dataclasses.dataclass
class Store:
    """A store to begin with: its files, and how it came to hold what it holds."""

    image: Image
    history: list[Act]


@dataclasses.dataclass
class Case:
    """In ``place`` the ``nth`` call of the fault's kind fails, once or (``lasting``) from then on."""

    place: str
    fault: str
    nth: int
    lasting: bool
    end: str

    def __str__(self) -> str:
        how = "from then on" if self.lasting else "once"
        return f"{self.place}, {self.fault}, number {self.nth}, {how}, then {self.end}"


class Trouble:
    """Makes the n-th call fail once it is armed, and keeps what the disk would hold."""

    def __init__(self, case: Case, image: Image, luck: random.Random) -> None:
        self.kind, self._fault = FAULTS[case.fault]
        self._case, self._luck = case, luck
        self.medium = Medium(image)
        self.armed = False
        self.calls = 0
        self.fired = 0
        self.disk = Disk(fails=self._fails, heard=self.medium.happen)

    def _fails(self, call: Call) -> Fault | None:
        if not self.armed or call.kind != self.kind:
            return None
        self.calls += 1
        if self.calls < self._case.nth or (self.calls > self._case.nth and not self._case.lasting):
            return None
        self.fired += 1
        if call.kind == "sync":
            self.medium.sync_fails(call.file, self._luck)
        return self._fault


def prepared(folder: Path, seed: int) -> Store:
    """A store after some work, with a log that is not yet folded in."""
    luck = random.Random(seed)
    oracle = Oracle()
    source, workload = Repeatable(), Workload(oracle, luck)
    folder.mkdir()
    engine = SqliteEngine(folder / STORE, oracle.clock)
    history = []
    last = map(workload.act, ("publish", "lease"))
    for act in itertools.chain([workload.first()], workload.acts(PREPARED), last):
        wanted = oracle.do(act)
        agree(carry_out(engine, act, source), wanted)
        history.append(act)
    image = {name: (folder / name).read_bytes() for name in (STORE, f"{STORE}-wal")}
    engine.close()
    shutil.rmtree(folder)
    return Store(image, history)


def try_case(folder: Path, store: Store, case: Case, luck: random.Random, found: Found) -> bool:
    """Play a case; False when the place has no n-th call of this kind."""
    fresh = case.place == "migration"
    image, oracle = ({}, Oracle()) if fresh else (store.image, Oracle(store.history))
    trouble = Trouble(case, image, luck)
    play = _Play(folder, case, oracle, trouble, luck, found)
    write(image, folder)
    try:
        play.through()
    finally:
        play.leave()
        shutil.rmtree(folder)
    return bool(trouble.fired)


class _Play:
    """One case on its way: ``allowed`` is what the store may show, ``answer`` names what came out."""

    def __init__(
        self, folder: Path, case: Case, oracle: Oracle, trouble: Trouble, luck: random.Random, found: Found
    ) -> None:
        self.folder, self.case, self.oracle, self.trouble = folder, case, oracle, trouble
        self.luck, self.found = luck, found
        self.engine: SqliteEngine | None = None
        self.source = copy.copy(oracle.source)
        self.now_ms = oracle.clock.now_ms
        self.ids = list(oracle.ids)
        self.allowed = [oracle.shown(self.now_ms)]
        self.answer = "success"

    def through(self) -> None:
        """From opening to the end."""
        if self.case.place in ("open", "migration"):
            self._attempt(self._open, [])
        else:
            self._open()
            self._operate()
        self._while_it_lasts()
        self.trouble.armed = False
        if not self.trouble.fired:
            return
        self.found.count("cases")
        self.found.count(f"{self.case.fault}: {self.answer}")
        self._after()

    def leave(self) -> None:
        """Let go of the files, whatever happened."""
        self.trouble.armed = False
        if self.engine is not None:
            self.engine.close()

    def _says(self, holds: bool, what: str) -> None:
        self.found.expect(holds, f"{self.case}: {what}")

    def _open(self) -> None:
        self.engine = SqliteEngine(self.folder / STORE, lambda: self.now_ms, vfs=self.trouble.disk.name)

    def _real(self) -> SqliteEngine:
        assert self.engine is not None
        return self.engine

    def _attempt(self, work: Callable[[], object], after: list[Any]) -> None:
        """Do it with the fault armed. ``after``: what may be shown when it succeeded, if that differs."""
        self.trouble.armed = True
        try:
            work()
        except UnknownOutcome:
            self.answer = "unknown"
            self.allowed += after
        except DiskFull:
            self.answer = "disk full, nothing done"
        except Lost:
            self.answer = "nothing done"
        except Exception as error:
            self.answer = "no name"
            self._says(False, f"came out as {type(error).__name__}: {error}")
        else:
            self.allowed = after or self.allowed
            syncs = self.trouble.fired and self.trouble.kind == "sync"
            commits = self.case.place in ACTS
            self._says(not (syncs and commits), "success was answered after a failed sync")

    def _operate(self) -> None:
        place, engine = self.case.place, self._real()
        if place == "close":
            self._attempt(engine.close, [])
            self.engine = None
            return
        if place == "read":
            self._attempt(lambda: self._reads(engine), [])
            return
        engine._log.fold_pages = 1 if place == "checkpoint" else CHECKPOINT_PAGES * 100
        act = Workload(self.oracle, self.luck).act("publish" if place == "checkpoint" else place)
        self.now_ms = act.now_ms
        before, known = self.oracle.shown(self.now_ms), len(self.ids)
        self.oracle.do(act)
        self.ids = list(self.oracle.ids)
        self.allowed = [before + NOTHING_KNOWN * (len(self.ids) - known)]
        self._attempt(lambda: carry_out(engine, act, self.source), [self.oracle.shown(self.now_ms)])

    def _while_it_lasts(self) -> None:
        """Every commit writes and syncs: none succeeds while that fails, and each is refused by name."""
        if self.engine is None or not (self.trouble.fired and self.case.lasting):
            return
        try:
            self.engine.run(lambda tx: apply(tx, [c.Tick({(0, 1): b"{}"}, "node")]))
        except Lost:
            return
        except Exception as error:
            self._says(False, f"meanwhile came out as {type(error).__name__}: {error}")
        self._says(self.trouble.kind not in ("sync", "write"), "a commit succeeded while the disk failed")

    def _reads(self, engine: SqliteEngine) -> None:
        there = shown(engine, self.ids)
        self._says(
            there in self.allowed, f"a read was answered wrongly: {difference(there, self.allowed[0])}"
        )

    def _after(self) -> None:
        """The disk is well again: the store works or says why not; then it ends, and begins anew."""
        if self.engine is not None and self.luck.random() < 0.75:
            try:
                self._reads(self.engine)
                self._work(self.engine)
                self.allowed = [shown(self.engine, self.ids)]
                self.found.count("works again")
            except Lost:
                self.found.count("stopped by name")
            except Exception as error:
                self._says(False, f"afterwards came out as {type(error).__name__}: {error}")
        image = self._ended()
        again = self.folder.with_name(self.folder.name + "-again")
        write(image, again)
        try:
            engine = SqliteEngine(again / STORE, lambda: self.now_ms)
            try:
                problems = engine.check()
                there = shown(engine, self.ids)
                self._work(engine)
            finally:
                engine.close()
        except Lost as error:
            self._says(False, f"not readable: {error}")
            return
        finally:
            shutil.rmtree(again)
        self._says(not problems, f"damaged: {problems[:2]}")
        self._says(there in self.allowed, f"{self.answer}: {difference(there, self.allowed[0])}")

    def _work(self, engine: SqliteEngine) -> None:
        """Publish, lease and ack."""
        publish = c.Publish("later", [c.Entry(b'{"later":1}')])
        [leased] = engine.run(lambda tx: apply(tx, [publish, c.Lease("later", 1, 30_000)])).results[1:]
        assert isinstance(leased, c.Leased)
        [message] = leased.messages
        engine.run(lambda tx: apply(tx, [c.Ack([(message.message_id, message.handle)]), publish]))

    def _ended(self) -> Image:
        """The files that the next process finds."""
        if self.case.end == "closed" and self.engine is not None:
            self.engine.close()
            self.engine = None
        self.trouble.disk.heard = lambda _: None  # what this process does from now on, no disk sees
        if self.case.end == "power cut":
            return self.trouble.medium.cut(self.luck)
        if self.case.end == "killed, power cut later":
            return self._second_life()
        return self.trouble.medium.seen()

    def _second_life(self) -> Image:
        """The next process goes on with what it sees, and then the power is cut."""
        folder = self.folder.with_name(self.folder.name + "-second")
        write(self.trouble.medium.seen(), folder)
        disk = Disk(heard=self.trouble.medium.happen)
        try:
            engine = SqliteEngine(folder / STORE, lambda: self.now_ms, vfs=disk.name)
            try:
                self._reads(engine)
                self._work(engine)
                self.allowed = [shown(engine, self.ids)]
                return self.trouble.medium.cut(self.luck)
            finally:
                engine.close()
        finally:
            shutil.rmtree(folder)


def io_errors(
    seed: int,
    places: Sequence[str] = PLACES,
    faults: Sequence[str] = tuple(FAULTS),
    ends: Sequence[str] = ENDS,
) -> Found:
    """Every place, every fault, n = 1 … 60 as far as the place has such calls."""
    found, luck = Found(), random.Random(seed)
    with workshop() as folder:
        store = prepared(folder / "store", seed)
        for place in places:
            for fault in faults:
                for case in _cases(place, fault, luck, ends):
                    if not try_case(folder / "case", store, case, luck, found):
                        break
    return found


def _cases(place: str, fault: str, luck: random.Random, ends: Sequence[str]) -> Iterator[Case]:
    for nth in range(1, NTH_MAX + 1):
        yield Case(place, fault, nth, luck.random() < 0.5, luck.choice(ends))


def _without(name: str, instead: Callable[..., object]) -> Callable[[int], Found]:
    """Rounds of failed syncs with one of the log's safeties replaced."""

    def control(seed: int) -> Found:
        found = Found()
        with mock.patch.object(Log, name, instead):
            for number in range(40):  # a commit comes back only where its whole frame was written
                found.add(io_errors(seed + number, ACTS, ("EIO at a sync",)))
                if found.violations:
                    break
        return found

    return control


def _going_on_with_what_is_there(seed: int) -> Found:
    found = Found()
    with mock.patch("redrive.storage.sqlite.engine.write_again"):
        for number in range(60):  # it takes a sector that is missing where the next commit hangs on it
            found.add(io_errors(seed + number, ("ack", "lease", "prune"), ("EIO at a sync",), ends=ENDS[-1:]))
            if found.violations:
                break
    return found


def _commit_whatever_the_sync_says(log: Log) -> None:
    with suppress(apsw.IOError):
        log._writer.execute("COMMIT")


PROOFS = (
    Proof(
        name="io-errors",
        claim="Whatever call on the disk fails, nothing that was answered with success is lost, and what "
        "failed is named.",
        unit="cases",
        long=50_000,
        round=io_errors,
        controls={
            "a failed commit is left in the log": _without("_buried", lambda _log: True),
            "what a failed sync left is gone on with": _going_on_with_what_is_there,
            "a failed sync is not told": _without("_commit", _commit_whatever_the_sync_says),
        },
    ),
)
