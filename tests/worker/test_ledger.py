"""A worker with a ledger in a real SQLite file: one effect a job, and the evidence."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from tests.database import wait_for
from tests.worker.memory_queue import MemoryQueue

from redrive.domain.errors import PayloadTooLarge, RedriveError
from redrive.ledger import Job as Planned
from redrive.ledger import Ledger, LedgerNotInstalled, LedgerRetry
from redrive.transports import Entry, Published
from redrive.worker import Job, Reject, Worker
from redrive.worker.relay import Relay

SECONDS = 15.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An application's database with a ledger and a business table."""
    path = tmp_path / "game.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table effects (job_key text)")
        connection.commit()
    ledger = Ledger(f"sqlite:///{path}")
    ledger.install()
    ledger.close()
    return path


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """The ledger of that database."""
    made = Ledger(f"sqlite:///{path}")
    yield made
    made.close()


def effects(path: Path) -> list[str]:
    """The business table's rows."""
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("select job_key from effects order by 1")]


def settle(job: Job, db: sqlite3.Connection) -> dict[str, str]:
    """The business change."""
    db.execute("insert into effects values (?)", (job.key,))
    return {"settled": job.key}


def worker_of(queue: MemoryQueue, path: Path, handler: Callable[..., Any] = settle, **options: Any) -> Worker:
    """A worker with a ledger at ``path``."""
    options = {"wait_seconds": 0.2, "concurrency": 2} | options
    worker = Worker(queue, queue="work", ledger=f"sqlite:///{path}", **options)
    worker.job(handler)
    return worker


def test_a_message_published_twice_has_one_effect(path: Path, ledger: Ledger) -> None:
    """Two messages of one job key: the second finds the receipt and is acknowledged."""
    queue = MemoryQueue()
    queue.publish("work", [Entry(payload=1, job_key="s:1"), Entry(payload=1, job_key="s:1")])
    assert worker_of(queue, path).run_until_idle(SECONDS) == 2
    assert effects(path) == ["s:1"]
    assert len(queue.saw("ack")) == 2
    job = ledger.job("s:1")
    assert job is not None
    assert (job.state, job.result) == ("completed", {"settled": "s:1"})


def test_without_receipts_the_same_message_has_two_effects(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: with the safety off, the same run shows the damage."""
    monkeypatch.setenv("REDRIVE_TESTING", "1")
    monkeypatch.setenv("REDRIVE_UNSAFE", "no-receipts")
    queue = MemoryQueue()
    queue.publish("work", [Entry(payload=1, job_key="s:1"), Entry(payload=1, job_key="s:1")])
    worker_of(queue, path).run_until_idle(SECONDS)
    assert effects(path) == ["s:1", "s:1"]


def test_with_ack_first_a_failed_job_is_gone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: acknowledged before its commit, a job that fails is never delivered again."""
    calls: list[int] = []

    def fails_once(job: Job, db: sqlite3.Connection) -> None:
        calls.append(job.attempt)
        if job.attempt == 1:
            raise TimeoutError
        settle(job, db)

    for unsafe, expected in (("", 2), ("ack-first", 1)):
        monkeypatch.setenv("REDRIVE_TESTING", "1")
        monkeypatch.setenv("REDRIVE_UNSAFE", unsafe)
        calls.clear()
        queue = MemoryQueue()
        queue.publish("work", [Entry(payload=1, job_key=f"job{unsafe}")])
        worker_of(queue, path, fails_once).run_until_idle(SECONDS)
        assert len(calls) == expected
    assert effects(path) == ["job"]


def test_a_failure_leaves_no_effect_and_its_evidence(path: Path, ledger: Ledger) -> None:
    """What the handler wrote is undone; attempt and isolation stand in the ledger."""
    queue = MemoryQueue()

    def reject(job: Job, db: sqlite3.Connection) -> None:
        settle(job, db)
        raise Reject("no such payment")

    queue.publish("work", [Entry(payload=1, job_key="s:1")])
    worker_of(queue, path, reject).run_until_idle(SECONDS)
    job, attempts = ledger.job("s:1"), ledger.attempts("s:1")
    assert effects(path) == []
    assert job is not None
    assert job.state == "isolated"
    assert [(one.outcome, one.error_type, one.error_message) for one in attempts] == [
        ("reject", "Reject", "no such payment")
    ]
    assert {one.worker for one in attempts} == queue.consumer_ids


def test_a_lost_lease_is_not_committed(path: Path, ledger: Ledger) -> None:
    """A handler that ends after its lease cannot commit; the next delivery has the effect, once."""
    queue = MemoryQueue(visibility_seconds=0.6)

    def slow(job: Job, db: sqlite3.Connection) -> None:
        settle(job, db)
        if job.delivery == 1:
            queue.broken.set()  # no heartbeat gets through
            with queue.changed:
                (message,) = queue.queue("work").messages.values()
                queue.changed.wait_for(lambda: False, 0.7)
                assert message.delivery == 1
            queue.broken.clear()

    queue.publish("work", [Entry(payload=1, job_key="s:1")])
    worker_of(queue, path, slow).run_until_idle(SECONDS)
    assert effects(path) == ["s:1"]
    outcomes = [one.outcome for one in ledger.attempts("s:1")]
    assert outcomes == ["lost", "done"]


def test_planned_jobs_are_relayed_once(path: Path, ledger: Ledger) -> None:
    """What the application planned in its transaction is published and run; two relays publish it once."""
    queue = MemoryQueue()
    with closing(sqlite3.connect(path)) as connection:
        ledger.publish(connection, "work", [Planned(f"s:{n}", {"n": n}) for n in range(5)])
        connection.commit()
    rows = ledger.outbox.take(10, claim_seconds=0)  # a relay that died before it published
    assert len(rows) == 5
    moved = [Relay(ledger, queue).once(), Relay(ledger, queue).once()]
    assert moved == [5, 0]
    job = ledger.job("s:0")
    assert job is not None
    assert job.message_id in queue.saw("publish")
    assert worker_of(queue, path).run_until_idle(SECONDS) == 5
    assert effects(path) == [f"s:{n}" for n in range(5)]


def test_a_refused_job_does_not_hold_up_the_others(path: Path, ledger: Ledger) -> None:
    """A planned job that the queue refuses stays planned; its neighbours are accepted."""

    class Refusing(MemoryQueue):
        def publish(self, queue: str, entries: Sequence[Entry]) -> list[Published | RedriveError]:
            good = super().publish(queue, [entry for entry in entries if entry.job_key != "s:1"])
            place = [entry.job_key for entry in entries].index("s:1") if len(good) < len(entries) else None
            return good if place is None else [*good[:place], PayloadTooLarge("too big"), *good[place:]]

    queue = Refusing()
    with closing(sqlite3.connect(path)) as connection:
        ledger.publish(connection, "work", [Planned("s:0"), Planned("s:1"), Planned("s:2")])
        connection.commit()
    assert Relay(ledger, queue).once() == 2
    states = [job.state for key in ("s:0", "s:1", "s:2") if (job := ledger.job(key))]
    assert states == ["accepted", "planned", "accepted"]
    assert Relay(ledger, queue).once() == 0


def test_the_worker_refuses_to_start_without_tables(tmp_path: Path) -> None:
    """A missing ledger is found before any job is leased, so that no budget is burnt."""
    queue = MemoryQueue()
    queue.publish("work", [Entry(payload=1)])
    worker = worker_of(queue, tmp_path / "empty.db")
    with pytest.raises(LedgerNotInstalled) as refused:
        worker.run()
    assert "redrive ledger install" in refused.value.hint
    assert not queue.saw("lease")


def test_a_ledger_that_is_down_burns_no_budget(path: Path) -> None:
    """While the database lets no job begin, nothing is leased and no attempt is spent."""

    class Down(Ledger):
        left = 4  # questions until it is back

        def execute(self, *arguments: Any, **options: Any) -> Any:
            if self.left:
                raise LedgerRetry("the database cannot be reached")
            return super().execute(*arguments, **options)

        def job(self, job_key: str, **options: Any) -> Any:
            if queue.saw("lease") and self.left:
                self.left -= 1
                raise LedgerRetry("the database cannot be reached")
            return super().job(job_key, **options)

    queue = MemoryQueue(max_retries=0)
    queue.publish("work", [Entry(payload=1, job_key="s:1")])
    ledger = Down(f"sqlite:///{path}")
    worker = Worker(queue, queue="work", ledger=ledger, wait_seconds=0.2, concurrency=2)
    worker.job(settle)
    assert worker.run_until_idle(SECONDS) == 1
    ledger.close()
    assert effects(path) == ["s:1"]
    assert len(queue.saw("release")) <= 2  # of a slot, and of the other one by the poll under way
    assert not queue.queue("work").dead


def test_a_worker_waits_for_a_ledger_that_is_down_at_its_start(path: Path) -> None:
    """It starts, leases nothing until the database answers, and goes on by itself."""
    leased_while_down: list[int] = []

    class Late(Ledger):
        left = 4  # questions until it is there

        def job(self, job_key: str, **options: Any) -> Any:
            if self.left:
                self.left -= 1
                leased_while_down.append(len(queue.saw("lease")))
                raise LedgerRetry("the database cannot be reached")
            return super().job(job_key, **options)

    queue = MemoryQueue(max_retries=0)
    queue.publish("work", [Entry(payload=1, job_key="s:1")])
    ledger = Late(f"sqlite:///{path}")
    worker = Worker(queue, queue="work", ledger=ledger, wait_seconds=0.2)
    worker.job(settle)
    assert worker.run_until_idle(SECONDS) == 1
    ledger.close()
    assert leased_while_down == [0, 0, 0, 0]
    assert effects(path) == ["s:1"]


def test_async_handlers_have_one_effect_too(path: Path) -> None:
    """A coroutine's statements are in the receipt's transaction: two messages of one key, one effect."""

    async def handler(job: Job, db: sqlite3.Connection) -> None:
        await asyncio.to_thread(settle, job, db)

    queue = MemoryQueue()
    queue.publish("work", [Entry(payload=1, job_key="s:1"), Entry(payload=1, job_key="s:1")])
    assert worker_of(queue, path, handler).run_until_idle(SECONDS) == 2
    assert effects(path) == ["s:1"]


def test_async_handlers_leave_no_connection_behind(postgres_url: str) -> None:
    """The loop's connections to PostgreSQL are closed with it, also the one of a cancelled handler."""
    psycopg = pytest.importorskip("psycopg")
    begun = threading.Event()

    async def handler(job: Job, db: Any) -> None:
        await db.execute("insert into effects values (%s)", (job.key,))
        if job.key == "s:3":
            begun.set()
            await asyncio.wait_for(asyncio.Event().wait(), SECONDS)

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("create table effects (job_key text)")
        Ledger().install(connection)
        queue = MemoryQueue()
        queue.publish("work", [Entry(payload=1, job_key=f"s:{n}") for n in (1, 2, 3)])
        worker = Worker(queue, queue="work", ledger=postgres_url, wait_seconds=0.2, grace_seconds=0)
        worker.job(handler)
        running = threading.Thread(target=worker.run)
        running.start()
        wait_for(begun, SECONDS, "the last handler to begin")
        wait_for(lambda: len(queue.saw("ack")) == 2, SECONDS, "the first two to be acknowledged")
        worker.stop()
        running.join(SECONDS)
        assert not running.is_alive()
        count = "select count(*) from pg_stat_activity where datname = current_database()"
        wait_for(lambda: connection.execute(count).fetchone() == (1,), SECONDS, "the connections to end")
        assert connection.execute("select job_key from effects order by 1").fetchall() == [("s:1",), ("s:2",)]


@pytest.mark.parametrize("kind", ["engine", "sessionmaker"])
def test_an_async_engine_of_the_application_carries_async_handlers(path: Path, kind: str) -> None:
    """The handler gets an AsyncConnection or AsyncSession; two messages of one key, one effect."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")

    async def handler(job: Job, db: Any) -> None:
        await db.execute(text("insert into effects values (:key)"), {"key": job.key})

    queue = MemoryQueue()
    queue.publish("work", [Entry(payload=1, job_key="s:1"), Entry(payload=1, job_key="s:1")])
    ledger = Ledger(engine if kind == "engine" else async_sessionmaker(engine))
    worker = Worker(queue, queue="work", ledger=ledger, wait_seconds=0.2)
    worker.job(handler)
    assert worker.run_until_idle(SECONDS) == 2
    ledger.close()
    asyncio.run(engine.dispose())
    assert effects(path) == ["s:1"]
