"""The SQLite store on a disk in trouble: failed commits, a log that stays as it is, no room, damaged rows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest
from tests.proof.vfs import Call, Disk, Fault

from redrive.storage.conformance import Clock, Rig
from redrive.storage.port import Damaged, DiskFull, Lost, UnknownOutcome
from redrive.storage.sqlite import SqliteEngine, log, reserve

FAILED_SYNC = Fault(apsw.SQLITE_IOERR_FSYNC)
FAILED_WRITE = Fault(apsw.SQLITE_IOERR_WRITE)
NO_ROOM = Fault(apsw.SQLITE_FULL)


class Sick:
    """A disk whose calls fail as ``why`` says, once or while it is set."""

    def __init__(self) -> None:
        self.why: Callable[[Call], Fault | None] = lambda _: None
        self.disk = Disk(fails=self._fails)

    def _fails(self, call: Call) -> Fault | None:
        return self.why(call)

    def once(self, fault: Fault, kind: str) -> None:
        """The next call of this kind fails."""

        def fails(call: Call) -> Fault | None:
            if call.kind != kind:
                return None
            self.why = lambda _: None
            return fault

        self.why = fails

    def always(self, fault: Fault, kind: str, ending: str = "") -> None:
        """Every call of this kind on a file of this ending fails."""
        self.why = lambda call: fault if call.kind == kind and call.file.endswith(ending) else None

    def well(self) -> None:
        """Nothing fails any more."""
        self.why = lambda _: None


@pytest.fixture
def sick() -> Sick:
    """A disk that is well at first."""
    return Sick()


def rig_on(path: Path, sick: Sick, reserve_bytes: int = 0) -> Rig:
    """A store on this disk."""
    clock = Clock()
    return Rig(SqliteEngine(path, clock, vfs=sick.disk.name, reserve_bytes=reserve_bytes), clock)


def test_a_commit_whose_sync_failed_is_undone(sqlite_path: Path, sick: Sick) -> None:
    """It is written over: neither this process nor the next one that reads the log finds it."""
    rig = rig_on(sqlite_path, sick)
    rig.publish()
    sick.once(FAILED_SYNC, "sync")
    with pytest.raises(Lost) as failure:
        rig.publish()
    assert not isinstance(failure.value, UnknownOutcome)
    copy = sqlite_path.with_name("copy.db")
    for ending in ("", "-wal"):
        copy.with_name(copy.name + ending).write_bytes(Path(f"{sqlite_path}{ending}").read_bytes())
    assert rig.counts().ready == 1
    rig.engine.close()
    left = Rig(SqliteEngine(copy, rig.clock), rig.clock)
    assert left.counts().ready == 1
    left.engine.close()


def test_a_commit_that_cannot_be_undone_is_unknown(sqlite_path: Path, sick: Sick) -> None:
    """While every sync fails nothing is answered as done, nor as not done; afterwards the store goes on."""
    rig = rig_on(sqlite_path, sick)
    sick.always(FAILED_SYNC, "sync")
    for _ in range(3):
        with pytest.raises(UnknownOutcome, match="unknown"):
            rig.publish()
    sick.well()
    rig.publish()
    assert rig.counts().ready == 1
    rig.engine.close()


def test_a_log_that_cannot_be_folded_is_told_and_bounded(
    sqlite_path: Path, sick: Sick, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits go on while only the file fails: said once. Past the bound they are refused by name."""
    rig = rig_on(sqlite_path, sick)
    rig.engine._log.fold_pages = 1  # type: ignore[attr-defined]
    sick.always(FAILED_WRITE, "write", ".db")
    with caplog.at_level(logging.ERROR, "redrive.storage"):
        for _ in range(3):
            rig.publish()
    assert [record.message for record in caplog.records if "cannot be folded" in record.message][1:] == []
    monkeypatch.setattr(log, "WAL_BYTES_MAX", 0)
    with pytest.raises(Lost, match="cannot be folded into the file"):
        rig.publish()
    sick.well()
    rig.publish()
    assert rig.counts().ready == 4
    rig.engine.close()


def test_no_room_gives_the_reserve_up_and_takes_it_again(
    sqlite_path: Path, sick: Sick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reserve goes when a write finds no room, and is there again when the disk has twice its size."""
    free = [0]
    monkeypatch.setattr(reserve, "_LOOK_SECONDS", 0.0)

    def statvfs(_folder: object) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=free[0], f_frsize=1)

    monkeypatch.setattr("redrive.storage.sqlite.reserve.os.statvfs", statvfs)
    rig = rig_on(sqlite_path, sick, reserve_bytes=8_192)
    engine, kept = rig.engine, sqlite_path.with_name(sqlite_path.name + ".reserve")
    assert isinstance(engine, SqliteEngine)
    assert kept.stat().st_size == 8_192
    assert engine.full() is None
    sick.once(NO_ROOM, "write")
    with pytest.raises(DiskFull):
        rig.publish()
    assert not kept.exists()
    assert engine.full() == f"{sqlite_path}: the disk is full"
    free[0] = 2 * 8_192 - 1
    assert engine.full() is not None
    free[0] += 1
    assert engine.full() is None
    assert kept.stat().st_size == 8_192
    engine.close()


def test_a_log_without_room_in_the_file_takes_the_reserve(sqlite_path: Path, sick: Sick) -> None:
    """The commit is answered, for it is durable in the log; the reserve is given up for the file."""
    rig = rig_on(sqlite_path, sick, reserve_bytes=8_192)
    rig.engine._log.fold_pages = 1  # type: ignore[attr-defined]
    sick.once(NO_ROOM, "sync")
    sick.always(NO_ROOM, "write", ".db")
    rig.publish()
    assert not sqlite_path.with_name(sqlite_path.name + ".reserve").exists()
    sick.well()
    rig.engine.close()


def test_a_system_without_fallocate_writes_the_reserve(
    sqlite_path: Path, sick: Sick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reserve is as large there; a reserve that an earlier process left is kept."""
    monkeypatch.delattr("redrive.storage.sqlite.reserve.os.posix_fallocate")
    for _ in range(2):
        rig = rig_on(sqlite_path, sick, reserve_bytes=3 * 1024 * 1024 + 5)
        assert sqlite_path.with_name(sqlite_path.name + ".reserve").stat().st_size == 3 * 1024 * 1024 + 5
        rig.engine.close()


def test_a_disk_without_room_for_the_reserve_is_full_from_the_start(
    sqlite_path: Path, sick: Sick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store opens, for what finishes work; new work is refused."""

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("redrive.storage.sqlite.reserve.os.posix_fallocate", no_room)
    rig = rig_on(sqlite_path, sick, reserve_bytes=8_192)
    assert isinstance(rig.engine, SqliteEngine)
    assert rig.engine.full() is not None
    assert not sqlite_path.with_name(sqlite_path.name + ".reserve").exists()
    rig.engine.close()


def test_a_damaged_schema_is_refused_at_the_start(sqlite_path: Path) -> None:
    """SQLite would take the name of a column for another one, and say so at some later time, if ever."""
    SqliteEngine(sqlite_path).close()
    connection = apsw.Connection(str(sqlite_path))
    connection.pragma("writable_schema", True)
    connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'leased_ms', 'leasdd_ms')")
    connection.close()
    with pytest.raises(Lost, match=f"{sqlite_path.name}: the schema is damaged: table attempts"):
        SqliteEngine(sqlite_path)


@pytest.mark.parametrize("policy", ["{", '{"max_retries":"three"}', b"\xff\xfe"])
def test_rows_that_cannot_be_decoded_are_named(sqlite_path: Path, policy: str | bytes) -> None:
    """Whoever needs such a row is refused by name, in a read and in a batch."""
    rig = Rig(SqliteEngine(sqlite_path), Clock())
    rig.publish()
    rig.engine.close()
    connection = apsw.Connection(str(sqlite_path))
    connection.execute("UPDATE queues SET policy = CAST(? AS TEXT)", (policy,))
    connection.close()
    engine = SqliteEngine(sqlite_path)
    with pytest.raises(Damaged, match=f"{sqlite_path.name}: stored rows are damaged"):
        engine.read(lambda reader: reader.queue("jobs"))
    with pytest.raises(Damaged, match="stored rows are damaged"):
        Rig(engine, Clock()).publish()
    engine.close()
