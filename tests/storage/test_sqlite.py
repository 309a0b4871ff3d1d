"""The SQLite file: one owner, nothing acknowledged is lost, backups restore, readers do not block."""

from __future__ import annotations

import fcntl
import itertools
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from redrive.domain.errors import Conflict
from redrive.storage.commands import Entry, Publish
from redrive.storage.conformance import Clock, Rig
from redrive.storage.port import Lost, Reader
from redrive.storage.sqlite import SqliteEngine, backup
from redrive.storage.sqlite.connection import open_reader

WRITER = Path(__file__).with_name("writer.py")
KILLS = 10


@contextmanager
def writer(path: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A real process that owns the store and has begun to work."""
    command = [sys.executable, str(WRITER), str(path), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait(timeout=10)
        if process.stdout is not None:
            process.stdout.close()


def killed_after(path: Path, count: int, *words: str) -> list[str]:
    """What the process had answered when it was killed, in the middle of its work, after so many answers."""
    with writer(path, *words) as process:
        assert process.stdout is not None
        answered = [process.stdout.readline().strip() for _ in range(count)]
        process.send_signal(signal.SIGKILL)
        answered += [line.strip() for line in process.stdout if line.endswith("\n")]
    return answered


def missing(path: Path, message_ids: list[str]) -> list[str]:
    """Which of these the reopened store does not hold; the store itself must be sound."""
    engine = SqliteEngine(path)
    try:
        assert engine.check() == []
        return [m for m in message_ids if engine.read(lambda reader, m=m: reader.message(m)) is None]
    finally:
        engine.close()


def rig_on(path: Path) -> Rig:
    """A store under a clock of its own."""
    clock = Clock()
    return Rig(SqliteEngine(path, clock), clock)


def test_a_second_owner_is_refused_by_name(sqlite_path: Path) -> None:
    """While a process owns the file, another is told which one, and what to do instead."""
    with writer(sqlite_path) as process:
        with pytest.raises(Conflict, match=f"in use by process {process.pid}\\b") as refusal:
            SqliteEngine(sqlite_path)
        assert "REST" in refusal.value.hint
    SqliteEngine(sqlite_path).close()  # the kernel gave the file back


def test_nothing_acknowledged_is_lost_by_kill_9(sqlite_path: Path) -> None:
    """Ten times killed in mid-work: the reopened store is sound and holds all that was answered (A5)."""
    answered: list[str] = []
    for kill in range(KILLS):
        now = killed_after(sqlite_path, 3 + 7 * kill)
        assert len(now) >= 3 + 7 * kill
        answered += now
    assert missing(sqlite_path, answered) == []


def test_answering_before_the_commit_loses(sqlite_path: Path) -> None:
    """The control: a process that answers before its COMMIT loses answered messages to the same kills."""
    answered: list[str] = []
    for kill in range(200):
        answered += killed_after(sqlite_path, 1 + kill % 5, "early")
        if lost := missing(sqlite_path, answered):
            assert len(lost) <= len(answered)
            return
    raise AssertionError("200 kills found nothing: this control does not see a lost message")


def test_a_failed_commit_is_not_answered(sqlite_path: Path) -> None:
    """When the file cannot be written the batch comes out as `Lost`, and nothing of it is there."""
    rig = rig_on(sqlite_path)
    rig.publish()
    intruder = apsw.Connection(str(sqlite_path))
    rig.engine._writer.set_busy_timeout(0)  # type: ignore[attr-defined]
    intruder.execute("BEGIN IMMEDIATE")
    with pytest.raises(Lost, match="Busy"):
        rig.publish()
    intruder.execute("ROLLBACK")
    intruder.close()
    assert rig.counts().ready == 1
    rig.engine.close()


def test_a_backup_under_load_restores(sqlite_path: Path, tmp_path: Path) -> None:
    """A copy made while messages arrive opens, is sound, and holds all that was there when it began."""
    engine = SqliteEngine(sqlite_path)
    rig = Rig(engine, Clock())
    before = [rig.publish(body=b"x" * 4_000) for _ in range(300)]
    started, stop, during = threading.Event(), threading.Event(), []

    def load() -> None:
        while not stop.is_set():
            during.append(rig.publish(body=b"y" * 4_000))
            started.set()

    thread = threading.Thread(target=load)
    thread.start()
    try:
        assert started.wait(10)
        size = engine.backup(tmp_path / "copy.db")
    finally:
        stop.set()
        thread.join(10)
    assert size > 300 * 4_000
    with pytest.raises(FileExistsError):
        engine.backup(tmp_path / "copy.db")
    engine.close()
    assert during
    assert missing(tmp_path / "copy.db", before) == []


def test_a_backup_takes_along_what_is_committed_meanwhile(
    sqlite_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits between two steps go through at once and into the copy; it never begins again."""
    rig = rig_on(sqlite_path)
    before = [rig.publish(body=b"x" * 4_000) for _ in range(60)]
    monkeypatch.setattr(backup, "_PAGES", 8)
    during: list[str] = []

    def monotonic() -> float:  # asked before every step
        if len(during) < 12:
            during.append(rig.publish(body=b"y" * 4_000))
        return float(len(during))

    monkeypatch.setattr(backup, "seams", SimpleNamespace(monotonic=monotonic))
    rig.engine.backup(tmp_path / "copy.db")  # type: ignore[attr-defined]
    rig.engine.close()
    assert len(during) > 5
    assert missing(tmp_path / "copy.db", before + during) == []


def test_a_backup_pins_no_snapshot(
    sqlite_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write-ahead log can be folded in between two steps; a reader's snapshot is the control."""
    rig = rig_on(sqlite_path)
    for _ in range(60):
        rig.publish(body=b"x" * 4_000)
    monkeypatch.setattr(backup, "_PAGES", 8)
    left: list[int] = []

    def folded() -> int:
        """Pages of the log that a checkpoint had to leave where they are."""
        rig.publish()
        checkpoint = rig.engine._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")  # type: ignore[attr-defined]
        [(_busy, pages, done)] = checkpoint.fetchall()
        return int(pages) - int(done)

    def monotonic() -> float:
        left.append(folded())
        return 0.0

    monkeypatch.setattr(backup, "seams", SimpleNamespace(monotonic=monotonic))
    rig.engine.backup(tmp_path / "copy.db")  # type: ignore[attr-defined]
    assert set(left) == {0}
    reader = open_reader(sqlite_path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM messages").fetchall()
    assert folded() > 0
    reader.close()
    rig.engine.close()


def test_an_unfinished_backup_leaves_nothing(
    sqlite_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that cannot end in time is named as failed, its file is removed, and the store works on."""
    rig = rig_on(sqlite_path)
    rig.publish()
    with monkeypatch.context() as patch:
        patch.setattr(backup, "seams", SimpleNamespace(monotonic=itertools.count(0, 601).__next__))
        with pytest.raises(Lost, match="not finished in time"):
            rig.engine.backup(tmp_path / "copy.db")  # type: ignore[attr-defined]
    assert list(tmp_path.glob("copy.db*")) == []
    rig.publish()
    assert rig.engine.backup(tmp_path / "copy.db") > 0  # type: ignore[attr-defined]
    rig.engine.close()


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        ("UPDATE groups SET live = live + 1", "counts 2 messages and holds 1"),
        ("UPDATE groups SET busy = NULL", "is not busy with it"),
        ("UPDATE messages SET slot = 2", "is not leased in it"),
        ("UPDATE messages SET slot = 2; UPDATE groups SET busy = NULL", "is stranded"),
        ("UPDATE messages SET dead = 1", "has no open dead-letter record"),
        ("UPDATE messages SET queue_id = 99", "does not exist"),
        ("DELETE FROM bodies", "has no body"),
        ("DELETE FROM messages", "belongs to no message"),
    ],
)
def test_check_finds_contradictions(sqlite_path: Path, damage: str, finding: str) -> None:
    """A sound store has no findings; each kind of contradiction is found and named."""
    rig = rig_on(sqlite_path)
    rig.create(kind="fifo")
    rig.publish(group="a")
    rig.lease()
    assert rig.engine.check() == []
    connection = apsw.Connection(str(sqlite_path))
    connection.execute(damage)
    connection.close()
    assert any(finding in problem for problem in rig.engine.check()), rig.engine.check()
    rig.engine.close()


def test_a_reader_does_not_block_the_writer(sqlite_path: Path) -> None:
    """While a snapshot is being read a commit goes through, and the snapshot does not see it."""
    rig = rig_on(sqlite_path)
    rig.publish()
    committed = threading.Event()

    def read(reader: Reader) -> tuple[int, int]:
        queue = reader.queue("jobs")
        assert queue is not None
        before = reader.counts(queue).ready
        thread = threading.Thread(target=lambda: (rig.publish(), committed.set()))
        thread.start()
        assert committed.wait(10), "the writer waited for the reader"
        thread.join(10)
        return before, reader.counts(queue).ready

    assert rig.engine.read(read) == (1, 1)
    assert rig.counts().ready == 2
    rig.engine.close()


def test_many_readers_are_bounded(sqlite_path: Path) -> None:
    """More readers than connections take turns; each gets its answer."""
    rig = rig_on(sqlite_path)
    rig.do(Publish("jobs", [Entry(b"{}")] * 10))
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(rig.counts().ready)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert answers == [10] * 12
    rig.engine.close()


def test_a_newer_schema_is_refused_kindly(sqlite_path: Path) -> None:
    """A file that a newer version has written is left alone, and the message says what to do."""
    SqliteEngine(sqlite_path).close()
    connection = apsw.Connection(str(sqlite_path))
    connection.pragma("user_version", 999)
    connection.close()
    before = sqlite_path.read_bytes()
    with pytest.raises(Conflict, match=re.escape("schema version 999")) as refusal:
        SqliteEngine(sqlite_path)
    assert "newer" in refusal.value.hint
    assert sqlite_path.read_bytes() == before
    with pytest.raises(Conflict, match="999"):  # and the file was not kept locked by the first try
        SqliteEngine(sqlite_path)


def test_no_database_at_all(sqlite_path: Path) -> None:
    """A file that is something else is named as failed, and is not written."""
    sqlite_path.write_bytes(b"this is a text file, not a database" * 100)
    with pytest.raises(Lost, match="NotADB"):
        SqliteEngine(sqlite_path)
    assert sqlite_path.read_bytes().startswith(b"this is a text file")
    assert list(sqlite_path.parent.iterdir()) == [sqlite_path]


def test_a_lock_that_its_owner_withdrew_is_not_taken_for_one(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who opened the owner's file just before it was removed takes the next one, or there would be two."""
    beside, flock = sqlite_path.with_name(sqlite_path.name + ".owner"), fcntl.flock

    def withdrawn(file: int, how: int) -> None:
        monkeypatch.undo()
        beside.unlink()
        flock(file, how)

    monkeypatch.setattr("redrive.storage.sqlite.ownership.fcntl.flock", withdrawn)
    engine = SqliteEngine(sqlite_path)
    with pytest.raises(Conflict, match="in use by process"):
        SqliteEngine(sqlite_path)
    engine.close()


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize(
    ("version", "tables"),
    [
        *itertools.product([0, 1, 7, 999], [["payments"], ["messages", "queues", "users"]]),
        (7, []),  # an empty one without a version is for whoever comes first
    ],
)
def test_an_applications_database_is_refused_and_left_alone(
    sqlite_path: Path, version: int, tables: list[str], journal: str
) -> None:
    """Whatever version it counts and whatever words it shares with us; not a byte of it changes, and no file
    of ours stays beside it.
    """
    application = apsw.Connection(str(sqlite_path))
    application.pragma("journal_mode", journal)
    for table in tables:
        application.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY)")
    application.pragma("user_version", version)
    application.close()
    before = sqlite_path.read_bytes()
    with pytest.raises(
        Conflict, match=f"another application's .* {tables[0] if tables else 'none'}"
    ) as refusal:
        SqliteEngine(sqlite_path)
    assert "a file of its own" in refusal.value.hint
    assert sqlite_path.read_bytes() == before
    assert list(sqlite_path.parent.iterdir()) == [sqlite_path]


def test_the_log_that_another_program_left_stays_as_it_is(sqlite_path: Path, tmp_path: Path) -> None:
    """Its last commits wait there for it: a refusal does not fold them into the file."""
    application = apsw.Connection(str(tmp_path / "running.db"))
    application.pragma("journal_mode", "WAL")
    application.execute("CREATE TABLE payments (id INTEGER PRIMARY KEY)")
    application.wal_checkpoint()
    application.execute("PRAGMA user_version = 7; INSERT INTO payments VALUES (1)")
    log = sqlite_path.with_name(sqlite_path.name + "-wal")
    sqlite_path.write_bytes((tmp_path / "running.db").read_bytes())  # as after a crash of the program
    log.write_bytes((tmp_path / "running.db-wal").read_bytes())
    application.close()
    before = sqlite_path.read_bytes(), log.read_bytes()
    with pytest.raises(Conflict, match="payments"):
        SqliteEngine(sqlite_path)
    assert (sqlite_path.read_bytes(), log.read_bytes()) == before


def test_tables_of_an_application_beside_ours_change_nothing(sqlite_path: Path) -> None:
    """The control: a store stays a store, also when one of its tables is renamed; that is damage."""
    SqliteEngine(sqlite_path).close()
    connection = apsw.Connection(str(sqlite_path))
    connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY)")
    SqliteEngine(sqlite_path).close()
    connection.execute("ALTER TABLE tombstones RENAME TO tombstonez")
    connection.close()
    with pytest.raises(Lost, match="damaged"):
        SqliteEngine(sqlite_path)


def test_a_file_that_is_no_database_is_named(sqlite_path: Path) -> None:
    """Which file failed, for a service has more than one."""
    sqlite_path.write_text("not a database, but long enough to be looked at" * 100)
    with pytest.raises(Lost, match=sqlite_path.name):
        SqliteEngine(sqlite_path)


def test_a_store_may_be_closed_twice(sqlite_path: Path) -> None:
    """The second time nothing happens, and another process may have the file."""
    engine = SqliteEngine(sqlite_path)
    engine.close()
    engine.close()
    SqliteEngine(sqlite_path).close()
