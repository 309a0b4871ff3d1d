"""A power cut at every write boundary of SQLite, and what the reopened store holds.

A life of a store is played once, through a VFS that tells of every call. Then the power fails before and
after each of these calls: of what was not synced, a random half of the sectors is on the disk. Each such
image is opened as a service would open it, and must show exactly what the oracle shows before the command
that was under way, or after it. Everything answered before that command is therefore there, in the state in
which it was answered. Every second life begins on an image that a cut left.
"""

from __future__ import annotations

import copy
import dataclasses
import logging
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.port import Lost
from redrive.storage.sqlite import SqliteEngine
from tests.proof.medium import Image, Medium
from tests.proof.runs import Found, Proof
from tests.proof.vfs import Call, Disk
from tests.proof.workload import Act, Oracle, Workload, agree, carry_out, difference, shown, write

STORE = "store.db"
ACTS = 40
CHECKPOINT_PAGES = 60  # small, so that a short life has checkpoints in it
GOES_ON_EVERY = 25  # after so many images one is worked on
NOTHING_KNOWN: list[Any] = [[], [], None]  # of a message: no attempts, no dead-letter records, no tombstone
_SHARED_MEMORY = 32_768


@contextmanager
def workshop() -> Iterator[Path]:
    """A folder, in memory where that is possible: what is durable is decided here, not by the disk below."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    log = logging.getLogger("redrive")
    level = log.level
    log.setLevel(logging.CRITICAL)  # clocks step and disks fail here on purpose
    folder = Path(tempfile.mkdtemp(prefix="redrive-proof-", dir=memory))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        log.setLevel(level)


@dataclasses.dataclass
class Moment:
    """What is under way: an act, or the opening or closing of the store; and what may be found meanwhile."""

    name: str
    now_ms: int
    ids: list[str]
    before: list[Any]
    after: list[Any]
    acts_before: int  # of the history, how many were answered


@dataclasses.dataclass
class Life:
    """A store from opening to closing, with all calls that it made on the disk, each with its moment."""

    start: Image
    calls: list[tuple[int, Call]] = dataclasses.field(default_factory=list)
    moments: list[Moment] = dataclasses.field(default_factory=list)
    history: list[Act] = dataclasses.field(default_factory=list)


def live(folder: Path, life: Life, luck: random.Random, synchronous: str) -> None:
    """Go on from ``life.start`` after ``life.history``; record what happens in ``life``."""
    write(life.start, folder)
    oracle = Oracle(life.history)
    source = copy.copy(oracle.source)
    disk = Disk(heard=lambda call: life.calls.append((len(life.moments) - 1, call)))

    def begin(name: str, act: Act | None = None) -> list[object]:
        now_ms = act.now_ms if act else oracle.clock.now_ms
        before, known = oracle.shown(now_ms), len(oracle.ids)
        answers = oracle.do(act) if act else []
        ids = list(oracle.ids)
        before += NOTHING_KNOWN * (len(ids) - known)
        life.moments.append(Moment(name, now_ms, ids, before, oracle.shown(now_ms), len(life.history)))
        return answers

    def opened() -> SqliteEngine:
        begin("migration" if not life.history else "open")
        engine = SqliteEngine(folder / STORE, oracle.clock, synchronous=synchronous, vfs=disk.name)
        engine._log.fold_pages = CHECKPOINT_PAGES
        return engine

    workload = Workload(oracle, luck)
    engine = opened()
    for act in ([] if life.history else [workload.first()], workload.acts(ACTS)):
        for one in act:
            wanted = begin(one.name, one)
            agree(carry_out(engine, one, source), wanted)
            life.history.append(one)
            if luck.random() < 0.05:
                begin("close")
                engine.close()
                engine = opened()
    begin("close")
    engine.close()
    shutil.rmtree(folder)


@dataclasses.dataclass
class Cut:
    """An image, the moment of the cut, and words that say where it was."""

    image: Image
    moment: Moment
    where: str


def cuts(life: Life, luck: random.Random) -> Iterator[Cut]:
    """One image after each call, and one before the first."""
    medium = Medium(life.start)
    for number, (moment, call) in enumerate(life.calls):
        medium.happen(call)
        image = medium.cut(luck)
        if luck.random() < 0.25:  # shared memory is never synced: anything may be left of it
            image[f"{STORE}-shm"] = luck.randbytes(_SHARED_MEMORY)
        now = life.moments[moment]
        where = f"call {number} ({call.kind} of {call.file} at {call.offset}) in {now.name}"
        yield Cut(image, now, where)


def examine(folder: Path, cut: Cut, found: Found, *, goes_on: bool = False) -> int | None:
    """Open the image as a service would; how many acts of the history are in it, or None when it is bad."""
    write(cut.image, folder)
    try:
        engine = SqliteEngine(folder / STORE, lambda: cut.moment.now_ms)
        try:
            problems = engine.check()
            there = [] if problems else shown(engine, cut.moment.ids)
            if goes_on and not problems:
                problems = _go_on(engine)
        finally:
            engine.close()
    except Lost as error:
        found.expect(False, f"{cut.where}: not readable: {error}")
        return None
    finally:
        shutil.rmtree(folder)
    found.expect(not problems, f"{cut.where}: damaged: {problems[:2]}")
    if problems:
        return None
    if there == cut.moment.before:
        return cut.moment.acts_before
    if there == cut.moment.after:
        return cut.moment.acts_before + 1
    found.expect(False, f"{cut.where}: {difference(there, cut.moment.before)}")
    return None


def _go_on(engine: SqliteEngine) -> list[str]:
    """Work on what was left: publish, lease everything, ack; the store must stay sound."""
    publish = c.Publish("plain", [c.Entry(b"{}")])
    [_, leased] = engine.run(lambda tx: apply(tx, [publish, c.Lease("plain", 100, 30_000)])).results
    assert isinstance(leased, c.Leased)
    acks: list[tuple[str, str | None]] = [(message.message_id, message.handle) for message in leased.messages]
    engine.run(lambda tx: apply(tx, [c.Ack(acks), publish]))
    return engine.check()


def power_cut(seed: int, synchronous: str = "FULL", lives: int = 2) -> Found:
    """So many lives, the second one on an image of the first, with a cut at every call of both."""
    found, luck = Found(), random.Random(seed)
    with workshop() as folder:
        life = Life({})
        for _ in range(lives):
            live(folder / "life", life, luck, synchronous)
            found.count("lives")
            chosen, seen = Life({}), 0
            for cut in cuts(life, luck):
                acts = examine(folder / "image", cut, found, goes_on=luck.randrange(GOES_ON_EVERY) == 0)
                found.count("images")
                found.count(f"in {_kind(cut)}")
                if acts is None:
                    continue
                found.count("with the command under way" if acts > cut.moment.acts_before else "without it")
                seen += 1
                if acts and luck.randrange(seen) == 0:
                    chosen = Life(cut.image, history=life.history[:acts])
            life = chosen
    return found


def _kind(cut: Cut) -> str:
    """A commit writes to the log only: what is written to the main file in an act is its checkpoint."""
    acts = cut.moment.name not in ("migration", "open", "close")
    return "checkpoint" if acts and f" of {STORE} " in cut.where else cut.moment.name


PROOFS = (
    Proof(
        name="power-cut",
        claim="After a power cut at any write of SQLite, the database is intact and holds all that was "
        "answered.",
        unit="images",
        long=200_000,
        round=power_cut,
        controls={
            "synchronous=NORMAL": lambda seed: power_cut(seed, "NORMAL", lives=1),
            "synchronous=OFF": lambda seed: power_cut(seed, "OFF", lives=1),
        },
    ),
)
