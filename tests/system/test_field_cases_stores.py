"""Cases from the field at the stores: the work of a claim, and a database that refuses writes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from redrive.storage import commands as c
from redrive.storage.conformance import Clock
from redrive.storage.conformance.rig import Rig
from redrive.storage.sqlite import SqliteEngine
from tests.api.wire import Caller, Reply
from tests.database import wait_for
from tests.system.servers import KEY, SECONDS, ServerProcess

MANY, BATCH = 20_000, 1_000
MORE_WORK_MAX = 1.3  # an index is one level deeper here and there
REFUSALS = 200
STEPS = 50  # of the database's virtual machine, between two looks


def steps_of(engine: SqliteEngine, work: Callable[[], object]) -> int:
    """How many steps of SQLite's virtual machine ``work`` takes on the writing connection."""
    taken = 0

    def count() -> bool:
        nonlocal taken
        taken += STEPS
        return False

    engine._writer.set_progress_handler(count, STEPS)
    try:
        work()
    finally:
        engine._writer.set_progress_handler(None, STEPS)
    return taken


def claims(path: Path, others: Callable[[Rig], None]) -> int:
    """The work of ten claims of ten out of a hundred due messages, beside ``others``."""
    engine = SqliteEngine(path, Clock())
    with closing(engine):
        rig = Rig(engine, engine.clock)  # type: ignore[arg-type]
        rig.create()
        rig.do(c.Publish("jobs", [c.Entry(b"{}") for _ in range(100)]))
        others(rig)
        return steps_of(engine, lambda: [rig.lease(count=10) for _ in range(10)])


def publish_many(rig: Rig, delay_ms: int) -> None:
    """MANY more messages."""
    for _ in range(MANY // BATCH):
        rig.do(c.Publish("jobs", [c.Entry(b"{}", delay_ms=delay_ms) for _ in range(BATCH)]))


def test_h1_messages_of_the_future_do_not_slow_the_claim_of_those_of_now(tmp_path: Path) -> None:
    """The same steps of the database's machine beside none and beside twenty thousand delayed ones."""
    alone = claims(tmp_path / "alone.db", lambda _: None)
    beside = claims(tmp_path / "beside.db", lambda rig: publish_many(rig, 3_600_000))
    assert 0 < beside <= MORE_WORK_MAX * alone


def test_h3_a_claim_does_the_same_work_in_a_backlog(tmp_path: Path) -> None:
    """Twenty thousand that are due at the same time: a claim still takes the first ones from the index."""
    alone = claims(tmp_path / "alone.db", lambda _: None)
    beside = claims(tmp_path / "beside.db", lambda rig: publish_many(rig, 0))
    assert 0 < beside <= MORE_WORK_MAX * alone


def test_h1_h3_control_a_claim_without_its_index_does_more_work(tmp_path: Path) -> None:
    """The control: with the indexes of messages dropped, the same claims are seen to read the backlog."""

    def without_indexes(rig: Rig) -> None:
        publish_many(rig, 0)
        writer = rig.engine._writer  # type: ignore[attr-defined]
        found = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        for (name,) in list(writer.execute(found)):
            writer.execute(f"DROP INDEX {name}")

    alone = claims(tmp_path / "alone.db", lambda _: None)
    assert claims(tmp_path / "beside.db", without_indexes) > 10 * alone


@pytest.fixture
def standby(postgres_url: str) -> Iterator[tuple[Caller, list[str]]]:
    """A server whose database takes no more writes, and the lines that it logs; a queue ``q`` is there."""
    with ServerProcess(postgres_url, TEST_STDERR="1") as server:
        lines: list[str] = []
        log = threading.Thread(target=lambda: lines.extend(server._process.stderr), name="log", daemon=True)
        log.start()
        caller = Caller(server.url, KEY)
        assert publish(caller).status == 200
        turn(postgres_url, read_only=True)
        yield caller, lines
        os.kill(server._process.pid, signal.SIGTERM)
        log.join(SECONDS)


def turn(url: str, *, read_only: bool) -> None:
    """Make the database read-only for every session, or not."""
    import psycopg

    name = url.rpartition("/")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        word = "on" if read_only else "off"
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {word}".encode())
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> %s"
        connection.execute(others, (name, connection.info.backend_pid))


def publish(caller: Caller) -> Reply:
    """One message into ``q``."""
    return caller.post("/v1/queue/publish", {"queue": "q", "payload": 1})


def said(reply: Reply) -> str:
    """The refusal's words."""
    assert reply.status == 503, reply.body
    return str(reply.error["message"])


def test_i3_a_database_that_takes_no_writes_is_told_from_one_that_is_away(
    standby: tuple[Caller, list[str]], postgres_url: str
) -> None:
    """503 that says so, not ready, reads go on; and by itself it goes on once it may write again."""
    caller, _ = standby
    wait_for(lambda: "read-only" in said(publish(caller)), SECONDS, "a refusal that says read-only")
    refused = [publish(caller) for _ in range(20)]  # when it has just tried, and between two tries
    assert {(reply.status, reply.error["code"]) for reply in refused} == {(503, "READ_ONLY")}
    assert caller.get("/readyz").status == 503
    wait_for(lambda: caller.get("/v1/queue/get/q").status == 200, SECONDS, "a read")
    turn(postgres_url, read_only=False)
    wait_for(lambda: publish(caller).status == 200, SECONDS, "writes to be accepted again")
    wait_for(lambda: caller.get("/readyz").status == 200, SECONDS, "readiness")


def test_i3_a_database_that_takes_no_writes_does_not_fill_the_log(
    standby: tuple[Caller, list[str]],
) -> None:
    """Hundreds of refusals are a few lines."""
    caller, lines = standby
    wait_for(lambda: publish(caller).status == 503, SECONDS, "the first refusal")
    began = len(lines)
    for _ in range(REFUSALS):
        assert publish(caller).status == 503
    assert len(lines) - began < REFUSALS / 4
