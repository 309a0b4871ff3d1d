"""The disk under an SQLite store is full: over REST, new work is refused, and what finishes work goes on.

A night: messages are published and some of them leased; another program fills the disk; publishes are tried
until one is refused; then the leased ones are settled, more are leased and settled, everything is looked at.
Then the other program's file is removed, and publishing works again without anybody's doing. At the end the
store is opened anew, and must hold exactly what was answered.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol
from unittest import mock

import apsw

from redrive.service import Service, ServiceSettings
from redrive.storage.port import Reader
from redrive.storage.sqlite import SqliteEngine
from redrive.storage.values import StoredMessage
from tests.api.conftest import SECRET, running
from tests.api.wire import Caller
from tests.database import wait_for
from tests.proof.power_cut import STORE, workshop
from tests.proof.runs import Found, Proof
from tests.proof.vfs import Call, Disk, Fault

DISK_BYTES = 40 * 1024 * 1024
RESERVE_BYTES = 8 * 1024 * 1024
QUEUE = "jobs"
_BLOCK = 256 * 1024
_TRIES_MAX = 2_000


class Small(Protocol):
    """A small disk: a folder on it, the VFS that a store there needs, and the other program's file."""

    folder: Path
    vfs: str | None

    def fill(self) -> None:
        """The other program takes all that is free."""

    def free(self) -> None:
        """The other program gives it back."""


class RealDisk:
    """A file system of its own, of that size."""

    vfs: str | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        """Write until there is no room."""
        with (self.folder / "other").open("wb", buffering=0) as other, contextlib.suppress(OSError):
            while other.write(bytes(_BLOCK)):
                pass

    def free(self) -> None:
        """Remove the file."""
        (self.folder / "other").unlink()


class PretendedDisk:
    """A folder whose files SQLite may not let grow beyond the size, together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._other = 0
        self._disk = Disk(fails=self._fails)
        self.vfs: str | None = self._disk.name

    def _room(self) -> int:
        held = sum(entry.stat().st_size for entry in os.scandir(self.folder))
        return DISK_BYTES - self._other - held

    def _fails(self, call: Call) -> Fault | None:
        if call.kind != "write":
            return None
        growth = call.offset + len(call.data) - (self.folder / call.file).stat().st_size
        return Fault(apsw.SQLITE_FULL) if growth > max(0, self._room()) else None

    def fill(self) -> None:
        """All that is free is the other program's."""
        self._other = self._room()

    def free(self) -> None:
        """It is nobody's again."""
        self._other = 0

    def statvfs(self, _folder: object) -> SimpleNamespace:
        """What the system would say of it."""
        return SimpleNamespace(f_bavail=max(0, self._room()), f_frsize=1)


@contextlib.contextmanager
def small_disk(kind: str) -> Iterator[Small | None]:
    """A small disk of this kind, ``real`` or ``pretended``; None where a real one may not be made."""
    with workshop() as folder:
        if kind == "pretended":
            pretended = PretendedDisk(folder)
            with mock.patch("redrive.storage.sqlite.reserve.os.statvfs", pretended.statvfs):
                yield pretended
            return
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(folder)]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            yield None
            return
        try:
            yield RealDisk(folder)
        finally:
            subprocess.run(["umount", str(folder)], check=True)


class Night:
    """The calls of one night, and what was answered: ``published`` and ``acked`` are message ids."""

    def __init__(self, call: Caller, luck: random.Random, found: Found) -> None:
        self._call, self._luck, self._found = call, luck, found
        self.published: set[str] = set()
        self.acked: set[str] = set()
        self._leased: list[dict[str, Any]] = []

    def publish(self, count: int) -> bool:
        """A batch; whether it was taken. Anything but 200 and 507 is a violation."""
        entries = [{"payload": {"data": "x" * self._luck.choice((10, 1_000, 8_000))}} for _ in range(count)]
        reply = self._call.post("/v1/queue/publish_batch", {"queue": QUEUE, "messages": entries})
        if reply.status == 507:
            self._found.count("refused with 507")
            self._found.expect(reply.error["code"] == "STORAGE_FULL", f"507 as {reply.body[:200]!r}")
            return False
        self.published |= {one["message_id"] for one in reply.data["items"]}
        return True

    def lease(self, count: int) -> None:
        """Lease some."""
        reply = self._goes_on("/v1/queue/consume", {"queue": QUEUE, "max_messages": count})
        self._leased += reply["messages"] if reply else []

    def settle(self) -> None:
        """Ack, extend or nack each leased one."""
        for one in self._leased:
            handle = {name: one[name] for name in ("message_id", "receipt_handle")} | {"queue": QUEUE}
            how = self._luck.choice(("ack", "ack", "ack", "extend", "nack"))
            more: dict[str, Any] = {"visibility_timeout": 60} if how == "extend" else {}
            if self._goes_on(f"/v1/queue/{how}", handle | more) and how == "ack":
                self.acked.add(one["message_id"])
        self._leased.clear()

    def _goes_on(self, path: str, body: dict[str, Any]) -> Any:
        reply = self._call.post(path, body)
        self._found.expect(reply.status == 200, f"{path} on a full disk: {reply.status} {reply.body[:300]!r}")
        self._found.count("went on")
        return reply.data if reply.status == 200 else None

    def look(self, *, full: bool) -> None:
        """Read everything that can be read; ``full`` is what it must say of the disk."""
        for path in (f"/v1/queue/messages/{QUEUE}", f"/v1/queue/stats/{QUEUE}", "/v1/queue/list"):
            reply = self._call.get(path)
            self._found.expect(reply.status == 200, f"{path}: {reply.status}")
            self._found.count("went on")
        ready, metrics = self._call.get("/readyz"), self._call.get("/metrics").body.decode()
        self._found.expect(ready.status == 200, f"/readyz: {ready.body!r}")
        self._found.expect((b"full" in ready.body) == full, f"/readyz says {ready.body!r}")
        self._found.expect(f"redrive_storage_full {float(full)}" in metrics, "redrive_storage_full is wrong")


def pass_night(disk: Small, luck: random.Random, found: Found, reserve_bytes: int = RESERVE_BYTES) -> None:
    """One night on this disk."""
    path = disk.folder / STORE
    engine = SqliteEngine(path, reserve_bytes=reserve_bytes, vfs=disk.vfs)
    service = Service(engine, ServiceSettings(api_key=SECRET))
    try:
        service.start(first_key=True)
        with running(service) as server:
            night = Night(Caller(server.url, SECRET), luck, found)
            for _ in range(luck.randint(3, 10)):
                night.publish(50)
            night.lease(100)
            disk.fill()
            tries = next(n for n in range(_TRIES_MAX) if not night.publish(luck.randint(1, 20)))
            found.at_worst("publishes taken after the disk was full", tries)
            night.look(full=reserve_bytes > 0)
            for _ in range(4):
                night.settle()
                night.lease(100)
                night.publish(1)
            night.look(full=reserve_bytes > 0)
            disk.free()
            wait_for(lambda: night.publish(1), 20, "publishing to work again")
            night.settle()
            night.look(full=False)
    finally:
        service.close()
    found.count("nights")
    _holds(SqliteEngine(path), night, found)


def _holds(engine: SqliteEngine, night: Night, found: Found) -> None:
    """The reopened store is sound, and holds exactly what was answered."""
    try:
        problems = engine.check()
        there = engine.read(lambda reader: {one.facts.message_id for one in _all(reader)})
    finally:
        engine.close()
    found.expect(not problems, f"damaged: {problems[:2]}")
    wanted = night.published - night.acked
    found.expect(not wanted - there, f"lost: {len(wanted - there)} messages that were answered")
    found.expect(not there - wanted, f"there unanswered, or after their ack: {len(there - wanted)} messages")


def _all(reader: Reader) -> list[StoredMessage]:
    queue = reader.queue(QUEUE)
    assert queue is not None
    return reader.messages(queue, None, None, 0, 1_000_000)


def disk_full(seed: int, reserve_bytes: int = RESERVE_BYTES) -> Found:
    """A night on a real small disk where that may be made, else on a pretended one."""
    found, luck = Found(), random.Random(seed)
    with small_disk("real") as real, small_disk("pretended") as pretended:
        disk = real or pretended
        assert disk is not None
        found.count("on a real file system" if disk is real else "on a pretended disk")
        pass_night(disk, luck, found, reserve_bytes)
    return found


PROOFS = (
    Proof(
        name="disk-full",
        claim="On a full disk new work is refused with 507, settling and reading go on, and all comes back "
        "by itself when there is room.",
        unit="nights",
        long=100,
        round=disk_full,
        controls={"no reserve": lambda seed: disk_full(seed, 0)},
    ),
)
