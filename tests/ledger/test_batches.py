"""Batches: members once, the follow-up once and only when all are completed, whoever completes the last."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from redrive.domain.errors import InvalidRequest, LimitExceeded
from redrive.domain.fingerprint import ErrorInfo
from redrive.ledger import Job, Ledger, LedgerRetry
from redrive.ledger.drivers import dbapi
from redrive.ledger.errors import BatchClosed, BatchDiffers, BatchNotFound
from redrive.ledger.steps import Statement
from tests.ledger.stores import Delivery, Store

KEY = "night:2026-10-23"
THEN = Job(key="settlement:2026-10-23", payload={"total": True})
NOW = datetime(2026, 10, 23, 2, tzinfo=UTC)


def jobs(count: int, prefix: str = "shard") -> list[Job]:
    """Members."""
    return [Job(key=f"{prefix}:{n}", payload={"n": n}) for n in range(count)]


def make(store: Store, ledger: Ledger, count: int, **options: Any) -> Any:
    """The batch of so many members, committed; the answer."""
    connection = store.connect()
    try:
        made = ledger.batch(connection, KEY, jobs(count), queue="settle", then=THEN, **options)
        connection.commit()
    finally:
        connection.rollback()
    return made


def do(store: Store, ledger: Ledger, key: str, delivery: int = 1) -> Any:
    """One delivery of a member, with its effect."""
    return ledger.execute(Delivery(key, delivery, queue="settle"), store.effect(key))


def followed(ledger: Ledger) -> bool:
    """Whether the follow-up is planned."""
    return ledger.job(THEN.key) is not None


def test_the_last_completion_plans_the_follow_up(store: Store, ledger: Ledger) -> None:
    """Not before; duplicates count once, and the ledger keeps what was published for the follow-up."""
    made = make(store, ledger, 3)
    assert (bool(made), made.state, made.members, made.open_members) == (True, "open", 3, 3)
    for n in (0, 1):
        assert do(store, ledger, f"shard:{n}")
        assert not do(store, ledger, f"shard:{n}", 2)
        assert not followed(ledger)
    assert ledger.batch_status(KEY).batch.open_members == 1
    assert do(store, ledger, "shard:2")
    then = ledger.job(THEN.key)
    assert then is not None
    assert (then.state, then.queue) == ("planned", "settle")
    status = ledger.batch_status(KEY)
    assert (status.batch.state, status.batch.open_members, status.counts["completed"]) == ("complete", 0, 3)
    assert not do(store, ledger, "shard:2", 3)
    assert do(store, ledger, THEN.key)
    assert ledger.batch_status(KEY).then.state == "completed"  # type: ignore[union-attr]


def test_the_same_call_again_is_harmless_and_another_is_named(store: Store, ledger: Ledger) -> None:
    """Also when it is complete; a difference names itself, and nothing of it is kept."""
    make(store, ledger, 2)
    assert not make(store, ledger, 2)
    with pytest.raises(BatchDiffers, match=r"not among its members: 1 \(shard:2\)"):
        make(store, ledger, 3)
    assert ledger.job("shard:2") is None
    do(store, ledger, "shard:0"), do(store, ledger, "shard:1")
    again = make(store, ledger, 2)
    assert (bool(again), again.state, again.open_members) == (False, "complete", 0)
    with pytest.raises(BatchNotFound, match="nowhere"):
        ledger.batch_status("nowhere")
    with pytest.raises(InvalidRequest, match="on_deadline needs deadline="):
        make(store, ledger, 2, on_deadline=Job(key="late"))


def test_a_bad_key_is_named_for_what_it_is(ledger: Ledger) -> None:
    """A batch key, a window's name or a job key; with the limit and what was given."""
    for bad in (lambda key: ledger.batch(None, key, [], queue="q"), ledger.batch_status, ledger.cancel_batch):
        with pytest.raises(LimitExceeded, match="batch key must be at most 200 bytes, got 300"):
            bad("k" * 300)
    with pytest.raises(LimitExceeded, match="window name must be at most 200 bytes, got 300"):
        ledger.window("w" * 300, until=NOW, start=NOW - timedelta(days=1))
    with pytest.raises(LimitExceeded, match="job key must be at most 200 bytes, got 300"):
        ledger.batch(None, KEY, [Job(key="j" * 300)], queue="q")


def test_a_member_can_come_late_but_not_after_the_end(store: Store, ledger: Ledger) -> None:
    """The batch waits for it, too."""
    make(store, ledger, 1)
    connection = store.connect()
    assert ledger.add_to_batch(connection, KEY, jobs(1, "late")) == 1
    assert ledger.add_to_batch(connection, KEY, jobs(1, "late")) == 0
    connection.commit()
    do(store, ledger, "shard:0")
    assert not followed(ledger)
    do(store, ledger, "late:0")
    assert followed(ledger)
    with pytest.raises(BatchClosed, match="complete"):
        ledger.add_to_batch(connection, KEY, jobs(1, "later"))
    connection.rollback()


def test_an_isolated_member_holds_it_open_and_says_why(store: Store, ledger: Ledger) -> None:
    """Redriven and completed, it counts once."""
    make(store, ledger, 2)
    do(store, ledger, "shard:0")
    error = ErrorInfo("Reject", "no such payment", "settle.py:1")
    ledger.failed(Delivery("shard:1", queue="settle"), "reject", error=error, isolated=True)
    status = ledger.batch_status(KEY)
    assert (status.batch.state, followed(ledger)) == ("open", False)
    [held] = status.holding
    assert (held.key, held.state, held.error_message) == ("shard:1", "isolated", "no such payment")
    assert ledger.redriven(["shard:1"]) == 1
    assert do(store, ledger, "shard:1", 2)
    assert followed(ledger)


def test_a_cancelled_batch_never_follows(store: Store, ledger: Ledger) -> None:
    """Its members are cancelled, those completed stay; a second time is no news."""
    make(store, ledger, 3)
    do(store, ledger, "shard:0")
    assert ledger.cancel_batch(KEY) == 2
    assert ledger.cancel_batch(KEY) == 0
    counts = {state: count for state, count in ledger.batch_status(KEY).counts.items() if count}
    assert counts == {"completed": 1, "cancelled": 2}
    ledger.sweep(pause_seconds=0)
    assert not followed(ledger)


def test_a_deadline_is_told_once_and_the_batch_goes_on(store: Store, ledger: Ledger) -> None:
    """Overdue; the alarm job is planned once by sweepers, the follow-up still waits for all."""
    alarm = Job(key="late:2026-10-23")
    make(store, ledger, 1, deadline=NOW - timedelta(days=1), on_deadline=alarm)
    assert ledger.batch_status(KEY).batch.state == "overdue"
    ledger.sweep(pause_seconds=0), ledger.sweep(pause_seconds=0)
    assert (ledger.job(alarm.key) is not None, followed(ledger)) == (True, False)
    do(store, ledger, "shard:0")
    assert followed(ledger)


def test_a_batch_completes_its_window(store: Store, ledger: Ledger) -> None:
    """In the transaction of its last member; until then the window is the batch's."""
    window = ledger.window("nights", until=NOW, start=NOW - timedelta(days=2))
    make(store, ledger, 2, window=window)
    do(store, ledger, "shard:0")
    assert ledger.window_history("nights") == []
    do(store, ledger, "shard:1")
    [done] = ledger.window_history("nights")
    assert (done.start, done.end, done.batch) == (NOW - timedelta(days=2), NOW, KEY)


def test_a_batch_without_members_is_complete_at_once(store: Store, ledger: Ledger) -> None:
    """Nothing to wait for."""
    assert make(store, ledger, 0).state == "complete"
    assert followed(ledger)


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("at", ["batch_countdown", "batch_complete", "follow_up"])
def test_nothing_is_kept_of_a_completion_that_dies(
    store: Store, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Before any of its last statements; done again, it has one effect and one follow-up."""
    make(store, ledger, 1)
    with monkeypatch.context() as patch:
        for driver in (dbapi.Psycopg, dbapi.Sqlite, dbapi.PyMysql):

            def dying(self: Any, step: Any, perform: Any = driver.perform) -> Any:
                if isinstance(step, Statement) and step.name == at:
                    raise Killed
                return perform(self, step)

            patch.setattr(driver, "perform", dying)
        with pytest.raises(Killed):
            do(store, ledger, "shard:0")
    assert (store.effects("shard:0"), followed(ledger)) == (0, False)
    assert do(store, ledger, "shard:0", 2)
    assert (store.effects("shard:0"), followed(ledger)) == (1, True)


def test_control_a_completion_that_does_not_count_is_found_by_the_sweeper(
    store: Store, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the decrement the follow-up is missing; the rows say what is missing, and it comes once."""
    make(store, ledger, 2)
    with monkeypatch.context() as patch:
        patch.setattr("redrive.ledger.effect.counted", lambda _: iter(()))
        do(store, ledger, "shard:0"), do(store, ledger, "shard:1")
    assert not followed(ledger)
    assert ledger.sweep(pause_seconds=0) == [KEY]
    assert followed(ledger)
    assert ledger.batch_status(KEY).batch.state == "complete"


def test_many_members_at_once(store: Store, ledger: Ledger) -> None:
    """Eight workers, every member twice, all at the same time: one effect each and one follow-up."""
    make(store, ledger, 64)
    ledgers = [store.ledger() for _ in range(8)]
    gate = threading.Barrier(8)

    def work(own: Ledger, first: int) -> int:
        gate.wait(30)
        done = 0
        for n in [*range(first, 64), *range(first)]:
            while True:
                try:
                    done += bool(do(store, own, f"shard:{n}"))
                    break
                except LedgerRetry:  # a worker leaves it to the next delivery
                    continue
        return done

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(work, ledgers, range(0, 64, 8)))
    for own in ledgers:
        own.close()
    assert sum(counts) == 64
    assert all(store.effects(f"shard:{n}") == 1 for n in range(64))
    status = ledger.batch_status(KEY)
    assert (status.batch.state, status.batch.open_members) == ("complete", 0)
    assert followed(ledger)
