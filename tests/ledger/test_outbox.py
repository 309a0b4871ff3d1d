"""The outbox: planned with the producer's transaction, published by one relay at a time."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from redrive.domain.errors import LimitExceeded, PayloadTooLarge
from redrive.ledger import GENERATION_HEADER, Job, Ledger, OutboxRow
from tests.ledger.stores import Delivery, Store

PRODUCER = """
import os, signal, sys
from redrive.ledger import Job, Ledger
from tests.ledger.stores import Store
store = Store(sys.argv[1], sys.argv[2])
db = store.connect()
store.effect("order:1")(db)
Ledger().publish(db, "orders", [Job("order:1", {"id": 1})])
if sys.argv[3] == "after":
    db.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""


def plan(store: Store, *jobs: Job, queue: str = "settlement") -> int:
    """Publish in a transaction that commits."""
    db = store.connect()
    count: int = Ledger().publish(db, queue, jobs)
    db.commit()
    db.close()
    return count


@pytest.mark.parametrize(("moment", "jobs"), [("before", 0), ("after", 1)])
def test_a_producer_killed_around_its_commit(store: Store, ledger: Ledger, moment: str, jobs: int) -> None:
    """Killed before: neither row nor job. Killed after: both, and the relay finds the job, once."""
    code = subprocess.run(
        [sys.executable, "-c", PRODUCER, store.name, store.url, moment], timeout=30, check=False
    ).returncode
    assert code == -9
    assert store.effects("order:1") == jobs
    taken = ledger.outbox.take(10)
    assert [row.job_key for row in taken] == ["order:1"] * jobs
    assert ledger.outbox.take(10) == []


def test_a_planned_job_keeps_everything_that_it_was_given(store: Store, ledger: Ledger) -> None:
    """Payload byte by byte, and every option."""
    exact = msgspec.Raw('{"a": 1.50, "z": "é\\u0000 \'; -- %s :x"}'.encode())
    job = Job(
        "k'\"\\%s:x",
        exact,
        headers={"h": "é"},
        delay_seconds=1.5,
        priority=3,
        group="g",
        deduplication_id="d",
    )
    assert plan(store, job) == 1
    [row] = ledger.outbox.take(10)
    assert bytes(row.payload) == bytes(exact)
    assert (row.job_key, row.queue, row.headers) == (job.key, "settlement", {"h": "é"})
    assert (row.delay_seconds, row.priority, row.group, row.deduplication_id) == (1.5, 3, "g", "d")
    assert row.idempotency_key == f"{job.key}#0"
    assert bytes(row.payload) == bytes(exact)


def test_a_key_that_is_known_is_not_planned_again(store: Store, ledger: Ledger) -> None:
    """The first plan stands, with its payload; a key seen only by a worker has no payload to publish."""
    assert plan(store, Job("a", 1), Job("b", 2)) == 2
    assert plan(store, Job("b", 3), Job("c", 4)) == 1
    assert ledger.execute(Delivery("d"), lambda _: None)
    assert plan(store, Job("d", 5)) == 0
    assert [(row.job_key, bytes(row.payload)) for row in ledger.outbox.take(10)] == [
        ("a", b"1"), ("b", b"2"), ("c", b"4"),
    ]  # fmt: skip


def test_a_plan_is_part_of_the_producers_transaction(store: Store, ledger: Ledger) -> None:
    """Rolled back, there is no job; an autocommit connection has it at once."""
    db = store.connect()
    assert Ledger().publish(db, "settlement", [Job("a")]) == 1
    db.rollback()
    assert ledger.job("a") is None
    db = store.connect(autocommit=True)
    assert Ledger().publish(db, "settlement", [Job("a")]) == 1
    found = ledger.job("a")
    assert found is not None
    assert found.state == "planned"


def test_two_relays_share_the_work_without_waiting(store: Store) -> None:
    """While one relay holds its rows locked, another takes the next ones (SQLite: waits for the short
    lock)."""
    plan(store, *(Job(f"job:{n}", n) for n in range(10)))
    one, two = store.ledger(), store.ledger()
    taken = [row.job_key for relay in (one, two, one, two) for row in relay.outbox.take(3)]
    assert taken == [f"job:{n}" for n in range(10)]
    one.close()
    two.close()


@pytest.mark.parametrize("name", ["postgres", "mysql"])
def test_rows_that_another_relay_is_claiming_are_passed_over(
    request: pytest.FixtureRequest, name: str
) -> None:
    """SKIP LOCKED: no relay waits for another one's open transaction, nor does a producer."""
    store: Store = request.getfixturevalue(f"{name}_store")
    plan(store, Job("a"), Job("b"))
    slow = store.connect()
    cursor = slow.cursor()
    cursor.execute("SELECT job_key FROM redrive_jobs WHERE job_key = 'a' FOR UPDATE")
    cursor.fetchall()
    relay = store.ledger()
    assert [row.job_key for row in relay.outbox.take(10)] == ["b"]
    assert plan(store, Job("c")) == 1
    slow.rollback()
    assert [row.job_key for row in relay.outbox.take(10)] == ["a", "c"]
    relay.close()


def test_a_relay_that_died_gives_its_rows_up_after_the_claim(store: Store, ledger: Ledger) -> None:
    """Taken and never accepted, the job is taken again, under the same idempotency key."""
    plan(store, Job("a"))
    [first] = ledger.outbox.take(10, claim_seconds=0)
    [again] = ledger.outbox.take(10)
    assert again.idempotency_key == first.idempotency_key
    assert again.claim != first.claim
    assert ledger.outbox.take(10) == []


def test_accepted_jobs_are_not_taken_again(store: Store, ledger: Ledger) -> None:
    """The row is accepted, with the queue's message id; also by a relay whose claim has run out."""
    plan(store, Job("a"), Job("b"))
    rows = [
        dataclasses.replace(row, message_id=f"m-{row.job_key}")
        for row in ledger.outbox.take(10, claim_seconds=0)
    ]
    assert ledger.outbox.accepted(rows) == 2
    assert ledger.outbox.take(10) == []
    found = ledger.job("a")
    assert found is not None
    assert (found.state, found.message_id) == ("accepted", "m-a")
    status = ledger.status()
    assert (status.planned, status.accepted, status.waiting_for_relay) == (0, 2, 0)
    assert ledger.outbox.accepted(rows) == 0
    assert ledger.outbox.accepted([]) == 0


def test_acceptance_never_takes_a_completion_back(store: Store, ledger: Ledger) -> None:
    """A worker was faster than the relay's note: the job stays completed."""
    plan(store, Job("a"))
    rows = ledger.outbox.take(10)
    assert ledger.execute(Delivery("a"), lambda _: "done")
    ledger.outbox.accepted(rows)
    found = ledger.job("a")
    assert found is not None
    assert found.state == "completed"


def test_a_row_given_back_is_due_again(store: Store, ledger: Ledger) -> None:
    """At once, or after a pause; a claim that is not held any more gives nothing back."""
    plan(store, Job("a"))
    rows = ledger.outbox.take(10)
    assert ledger.outbox.give_back(rows) == 1
    assert ledger.outbox.give_back(rows) == 0
    rows = ledger.outbox.take(10)
    assert len(rows) == 1
    assert ledger.outbox.give_back(rows, pause_seconds=60) == 1
    assert ledger.outbox.take(10) == []


def test_a_repair_publishes_under_a_new_generation(store: Store, ledger: Ledger) -> None:
    """The generation is in the idempotency key and the reserved header; a late note of the old one changes
    nothing."""
    plan(store, Job("a", headers={"h": "1"}))
    old: list[OutboxRow] = ledger.outbox.take(10)
    ledger.outbox.accepted(old)
    assert ledger.republish(["a", "unknown"]) == 1
    assert ledger.republish(["a"]) == 0  # it waits for a relay already
    ledger.outbox.accepted(old)
    [row] = ledger.outbox.take(10)
    assert (row.generation, row.idempotency_key) == (1, "a#1")
    assert row.headers == {"h": "1", GENERATION_HEADER: "1"}
    assert ledger.outbox.accepted([row]) == 1


def test_limits_of_a_plan(store: Store) -> None:
    """The job that is refused is named, and nothing of the call is planned."""
    db = store.connect()
    refused: list[tuple[str, Job, type[Exception]]] = [
        ("q", Job("a", "x" * 262_143), PayloadTooLarge),
        ("q", Job("k" * 201), LimitExceeded),
        ("q", Job("a", delay_seconds=604_801), LimitExceeded),
        ("q" * 85, Job("a"), LimitExceeded),
    ]
    for queue, job, error in refused:
        with pytest.raises(error):
            Ledger().publish(db, queue, [Job("fine"), job])
    assert Ledger().publish(db, "q", [Job("fine", "x" * 262_142)]) == 1
    with pytest.raises(LimitExceeded):
        store.ledger().outbox.take(1001)
    db.commit()
    db.close()


def test_a_large_plan_keeps_its_order(store: Store, ledger: Ledger) -> None:
    """More jobs than one statement takes; a relay takes them in the order they were given."""
    jobs = [Job(f"{(n * 7919) % 1501:04}", n) for n in range(1501)]
    assert plan(store, *jobs) == 1501
    taken: list[Any] = []
    while rows := ledger.outbox.take(1000):
        taken += [int(bytes(row.payload)) for row in rows]
        ledger.outbox.accepted(rows)
    assert taken == list(range(1501))


@pytest.mark.parametrize("key", ["k" * 198, "k" * 199, "k" * 200, "é" * 100])
def test_the_longest_keys_have_idempotency_keys_that_a_queue_takes(key: str) -> None:
    """``job_key#generation`` where it fits in 200 bytes; else by the key's hash, and still one a job and
    generation."""
    rows = [OutboxRow(key, n, "q", msgspec.Raw(b"1"), {}, None, None, None, None, "c") for n in (0, 1, 10)]
    names = [row.idempotency_key for row in rows]
    assert all(len(name.encode()) <= 200 for name in names)
    assert len(set(names)) == 3
    assert (names[0] == f"{key}#0") is (len(key.encode()) <= 198)
