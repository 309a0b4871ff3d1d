"""A worker with real threads over a queue with real leases."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
import urllib3
from tests.worker.memory_queue import MemoryQueue

from redrive import seams
from redrive.domain.errors import Unauthenticated
from redrive.transports import Entry
from redrive.worker import Job, Reject, RetryLater, Worker
from redrive.worker.pace import Pace

SECONDS = 10.0


@contextmanager
def running(worker: Worker) -> Iterator[threading.Thread]:
    """``worker.run()`` in a thread of its own, stopped at the end."""
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(worker.run()))
    thread.start()
    try:
        yield thread
    finally:
        worker.stop()
        thread.join(SECONDS)
        assert not thread.is_alive(), "the worker did not stop"
        assert codes == [0]


def worker_of(queue: MemoryQueue, handler: Callable[[Job], Any], **options: Any) -> Worker:
    """A worker over ``queue`` with short waits."""
    options = {"wait_seconds": 0.2, "concurrency": 2, "grace_seconds": SECONDS} | options
    worker = Worker(queue, queue="work", **options)
    worker.job(handler)
    return worker


def publish(queue: MemoryQueue, *payloads: Any, **fields: Any) -> list[str]:
    """Publish; the message ids."""
    entries = [Entry(payload=payload, **fields) for payload in payloads]
    return [stored.message_id for stored in queue.publish("work", entries)]  # type: ignore[union-attr]


def test_jobs_are_run_once_and_acknowledged() -> None:
    """Every message reaches the handler with its fields, and is gone afterwards."""
    queue = MemoryQueue()
    publish(queue, *range(50), headers={"redrive-generation": "3"})
    seen: list[Job] = []
    finished = worker_of(queue, seen.append).run_until_idle(SECONDS)
    assert finished == 50
    assert sorted(job.payload for job in seen) == list(range(50))
    assert len(queue.saw("ack")) == 50
    first = seen[0]
    assert (first.key, first.queue, first.attempt, first.delivery) == (first.message_id, "work", 1, 1)
    assert (first.generation, first.previous) == (3, None)
    assert {first.consumer_id} == queue.consumer_ids


def test_two_boots_have_two_identities() -> None:
    """A reused host name hides no orphans: each boot is another consumer."""
    queue = MemoryQueue()
    worker = worker_of(queue, lambda _: None)
    worker.run_until_idle(SECONDS)
    worker.run_until_idle(SECONDS)
    assert len(queue.consumer_ids) == 2


def test_async_handlers_run_on_a_loop() -> None:
    """Coroutines of several jobs run at the same time."""
    queue = MemoryQueue()
    publish(queue, 1, 2)
    both = asyncio.Barrier(2)

    async def handler(job: Job) -> None:
        async with asyncio.timeout(SECONDS):
            await both.wait()

    assert worker_of(queue, handler).run_until_idle(SECONDS) == 2
    assert len(queue.saw("ack")) == 2


def test_failures_are_classified() -> None:
    """A rejection is a dead letter at once, an unknown error is retried until its budget is spent."""
    queue = MemoryQueue(max_retries=1)
    (rejected,) = publish(queue, "reject")
    (unknown,) = publish(queue, "unknown")
    calls: list[str] = []

    def handler(job: Job) -> None:
        calls.append(job.payload)
        if job.payload == "reject":
            raise Reject("no such payment")
        raise RuntimeError("who knows")

    worker_of(queue, handler).run_until_idle(SECONDS)
    dead = queue.queue("work").dead
    assert sorted(calls) == ["reject", "unknown", "unknown"]
    assert dead[rejected][0] == "rejected"
    assert dead[unknown][0] == "max_attempts"
    error = dead[unknown][1]
    assert error is not None
    assert (error["type"], error["message"]) == ("RuntimeError", "who knows")
    assert "test_worker.py" in error["stack"]


def test_retry_later_waits_as_long_as_asked() -> None:
    """``RetryLater(after=…)`` is the nack's delay."""
    queue = MemoryQueue()
    publish(queue, 1)
    seen: list[Job] = []

    def handler(job: Job) -> None:
        seen.append(job)
        if job.attempt == 1:
            raise RetryLater(after=3600)

    worker_of(queue, handler).run_until_idle(SECONDS)
    assert [job.attempt for job in seen] == [1]
    (message,) = queue.queue("work").messages.values()
    assert message.previous == "nack"


def test_a_payload_of_the_wrong_type_is_permanent() -> None:
    """``payload=`` converts; what does not fit is rejected without calling the handler."""

    class Settlement(msgspec.Struct):
        shard: int

    queue = MemoryQueue()
    (_, wrong) = publish(queue, {"shard": 3}, {"shard": "three"})
    seen: list[Any] = []
    worker_of(queue, lambda job: seen.append(job.payload), payload=Settlement).run_until_idle(SECONDS)
    assert seen == [Settlement(3)]
    assert queue.queue("work").dead[wrong][0] == "rejected"


def test_an_undecodable_payload_is_a_dead_letter_of_that_name() -> None:
    """Bytes that are not JSON go to the dead letters with the reason ``undecodable``."""
    queue = MemoryQueue()
    (message_id,) = publish(queue, msgspec.Raw(b"{broken"))
    worker_of(queue, lambda _: None).run_until_idle(SECONDS)
    assert queue.queue("work").dead[message_id][0] == "undecodable"


def test_the_key_may_come_from_the_payload() -> None:
    """``key=`` names the business key of programs that send none."""
    queue = MemoryQueue()
    publish(queue, {"operation_id": "op-7"})
    keys: list[str] = []
    worker = worker_of(queue, lambda job: keys.append(job.key), key=lambda payload: payload["operation_id"])
    worker.run_until_idle(SECONDS)
    assert keys == ["op-7"]


def test_a_long_job_keeps_its_lease() -> None:
    """A handler that takes longer than the visibility timeout is not delivered a second time."""
    queue = MemoryQueue(visibility_seconds=0.6)
    publish(queue, 1)
    calls = threading.Semaphore(0)
    free = threading.Event()

    def handler(_: Job) -> None:
        calls.release()
        assert free.wait(SECONDS)

    with running(worker_of(queue, handler)):
        queue.wait_for("extend", 5)  # each is a third of the lease: it would have ended by now
        free.set()
        queue.wait_for("ack")
    assert calls.acquire(blocking=False)
    assert not calls.acquire(blocking=False)
    assert len(queue.saw("lease")) == 1


def test_a_lease_that_cannot_be_extended_is_stopped_before_its_end() -> None:
    """With the queue out of reach a coroutine is cancelled before its lease ends, and nothing is settled."""
    queue = MemoryQueue(visibility_seconds=0.6)
    publish(queue, 1)
    started, cancelled = threading.Event(), threading.Event()

    async def handler(job: Job) -> None:
        if job.delivery > 1:
            return
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with running(worker_of(queue, handler)):
        assert started.wait(SECONDS)
        queue.broken.set()
        assert cancelled.wait(SECONDS)
        (message,) = queue.queue("work").messages.values()
        assert message.lease_until is not None
        queue.broken.clear()
        queue.wait_for("ack")
    assert "nack" not in dict(queue.events)


def test_acks_survive_an_outage() -> None:
    """Work done while the queue is out of reach is acknowledged when it is back, and not run again."""
    queue = MemoryQueue(visibility_seconds=5)
    publish(queue, 1)
    started, free = threading.Event(), threading.Event()

    def handler(_: Job) -> None:
        started.set()
        assert free.wait(SECONDS)

    with running(worker_of(queue, handler)):
        assert started.wait(SECONDS)
        queue.broken.set()
        free.set()
        queue.wait_for("unreachable", 3)
        queue.broken.clear()
        queue.wait_for("ack")
    assert len(queue.saw("lease")) == 1


def test_an_outage_is_logged_seldom(caplog: pytest.LogCaptureFixture) -> None:
    """A worker comes back for ever, and says once that it cannot and once that it can again."""
    queue = MemoryQueue()
    queue.broken.set()
    with caplog.at_level(logging.INFO, "redrive.worker"), running(worker_of(queue, lambda _: None)):
        queue.wait_for("unreachable", 4)
        publish_after = threading.Thread(target=lambda: publish(queue, 1))
        queue.broken.clear()
        publish_after.start()
        publish_after.join()
        queue.wait_for("ack")
    about = [record.message for record in caplog.records if "consume from work" in record.message]
    assert len(about) == 2, about
    assert "works again" in about[1]


@pytest.mark.parametrize("starved", [False, True], ids=["", "no memory for a thread"])
def test_stopping_gives_back_what_waits_and_finishes_what_runs(
    monkeypatch: pytest.MonkeyPatch, starved: bool
) -> None:
    """A stop leases nothing more: the running job is finished, the waiting ones are released unspent."""
    whole = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if starved and thread.name == "redrive-give-back":
            raise RuntimeError("can't start new thread")  # as a handler that took all memory leaves it
        whole(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    queue = MemoryQueue()
    publish(queue, *range(4))
    started, free = threading.Event(), threading.Event()

    def handler(_: Job) -> None:
        started.set()
        assert free.wait(SECONDS)

    worker = worker_of(queue, handler, concurrency=1, prefetch=2)
    with running(worker):
        assert started.wait(SECONDS)
        worker.stop()
        queue.wait_for("release", 2)
        free.set()
    assert len(queue.saw("ack")) == 1
    left = queue.queue("work").messages.values()
    assert [message.attempt for message in left] == [0, 0, 0]
    assert all(message.lease_until is None for message in left)


def test_what_outlives_the_grace_is_released_not_failed() -> None:
    """Interrupted is not failed: the lease goes back with its attempt unspent."""
    queue = MemoryQueue()
    publish(queue, 1)
    started = threading.Event()

    async def handler(_: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    with running(worker_of(queue, handler, grace_seconds=0.1)):
        assert started.wait(SECONDS)
    (message,) = queue.queue("work").messages.values()
    assert (message.attempt, message.previous, message.lease_until) == (0, "released", None)
    assert not queue.saw("nack")


def test_prefetched_messages_go_back_when_handlers_are_busy() -> None:
    """What waits for a third of its lease is released for others, and not fetched again at once."""
    queue = MemoryQueue(visibility_seconds=0.6)
    publish(queue, *range(3))
    free = threading.Event()
    with running(worker_of(queue, lambda _: free.wait(SECONDS), concurrency=1, prefetch=2)):
        queue.wait_for("release", 2)
        queue.wait_for("extend", 3)
        assert len(queue.saw("lease")) == 3
        free.set()
        queue.wait_for("ack", 3)


def test_a_suspect_runs_with_nothing_else_leased() -> None:
    """A message whose last delivery was lost runs alone: the others are finished or given back first."""
    queue = MemoryQueue()
    (suspect,) = publish(queue, "suspect")
    stranger = queue.consume(
        "work", max_messages=1, visibility_timeout=0.3, wait_seconds=0, consumer_id="stranger"
    )
    assert len(stranger.messages) == 1
    due_at = seams.monotonic() + 0.35
    publish(queue, *range(6))
    leased_beside: list[int] = []

    def handler(job: Job) -> None:
        if job.payload == "suspect":
            with queue.changed:
                held = [m for m in queue.queue("work").messages.values() if m.lease_until is not None]
            leased_beside.append(len(held))
        else:  # keep the slots busy until the suspect is due
            with queue.changed:
                while (left := due_at - seams.monotonic()) > 0:
                    queue.changed.wait(left)

    worker_of(queue, handler, concurrency=2, prefetch=4).run_until_idle(SECONDS)
    assert leased_beside == [1]
    assert suspect in queue.saw("ack")
    assert len(queue.saw("ack")) == 7


def test_a_worn_worker_asks_to_be_started_again() -> None:
    """After ``recycle_after`` jobs the exit code is 75, and nothing that was leased is lost."""
    queue = MemoryQueue()
    publish(queue, *range(10))
    assert worker_of(queue, lambda _: None, recycle_after=3).run() == 75
    left = queue.queue("work").messages.values()
    assert len(left) + len(queue.saw("ack")) == 10
    assert all(message.lease_until is None for message in left)
    publish(queue, "one more")
    assert worker_of(queue, lambda _: None, memory_cap_bytes=1).run() == 75


def test_the_health_port_tells_whether_it_polls() -> None:
    """``/readyz`` is 200 while polling and 503 when the queue has been out of reach for too long."""
    queue = MemoryQueue()
    worker = worker_of(queue, lambda _: None, health_port=0, health_host="127.0.0.1", not_polling_seconds=0.5)
    publish(queue, 1)
    with running(worker), urllib3.PoolManager() as http:
        queue.wait_for("ack")
        url = f"http://127.0.0.1:{worker.health_port}"
        assert http.request("GET", f"{url}/readyz").status == 200
        queue.broken.set()
        failures, status = 0, 200
        while status == 200:
            failures += 1
            queue.wait_for("unreachable", failures)
            status = http.request("GET", f"{url}/readyz").status
        assert (status, failures > 1) == (503, True)
        assert http.request("GET", f"{url}/healthz").status == 200
        assert http.request("GET", f"{url}/other").status == 404


def test_a_handler_of_the_wrong_shape_is_refused_where_it_is_written() -> None:
    """The error names the function, what it takes and what it must take."""
    queue = MemoryQueue()
    with pytest.raises(TypeError, match=r"settle\(job, db\) must take \(job\): this worker has no ledger"):

        @Worker(queue, queue="work").job
        def settle(job, db):  # type: ignore[no-untyped-def]
            """Takes a database."""

    with pytest.raises(TypeError, match=r"must take \(job, db\): this worker has a ledger"):
        Worker(queue, queue="work", ledger="sqlite:///x.db").job(lambda job: None)


def test_a_worker_without_a_handler_says_so() -> None:
    """``run`` without ``@worker.job`` names what is missing."""
    with pytest.raises(TypeError, match=r"has no handler: decorate one with @worker\.job"):
        Worker(MemoryQueue(), queue="work").run()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("concurrency", 0),
        ("prefetch", -1),
        ("visibility_timeout", 0),
        ("wait_seconds", 21),
        ("executor", "x"),
    ],
)
def test_a_wrong_option_is_refused_where_it_is_written(option: str, value: Any) -> None:
    """The error names the option and the value."""
    with pytest.raises(ValueError, match=rf"{option} .*{value}"):
        Worker(MemoryQueue(), queue="work", **{option: value})


def test_a_wrong_key_is_logged_with_what_to_set(caplog: pytest.LogCaptureFixture) -> None:
    """The setting's name, not the header's."""
    stopping = threading.Event()
    stopping.set()
    with caplog.at_level(logging.WARNING, "redrive.worker"):
        pace = Pace(logging.getLogger("redrive.worker"), "consume from q", stopping)
        pace.failed(Unauthenticated("the key is not known", hint="send Authorization: Bearer KEY"))
    assert "REDRIVE_API_KEY" in caplog.text
    assert "Bearer" not in caplog.text
