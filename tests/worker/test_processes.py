"""Handlers in real child processes: one that dies takes its own job with it, and nothing else."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.worker import handlers
from tests.worker.memory_queue import MemoryQueue

from redrive import seams
from redrive.domain.errors import RedriveError
from redrive.transports import Entry
from redrive.worker import Worker
from redrive.worker.processes import ChildFailed
from redrive.worker.runners import ThreadRunner

SECONDS = 20.0


def publish(queue: MemoryQueue, *payloads: object) -> list[str]:
    """Publish; the message ids."""
    stored = queue.publish("work", [Entry(payload=payload) for payload in payloads])
    return [one.message_id for one in stored]  # type: ignore[union-attr]


def alive(pid_file: Path) -> bool:
    """Whether the process of that id exists."""
    try:
        os.kill(int(pid_file.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def pids(queue: MemoryQueue) -> list[int]:
    """The processes that rejected, in order."""
    errors = [error for _, error in queue.queue("work").dead.values()]
    return [int(error["message"].removeprefix("pid ")) for error in errors if error]


@pytest.mark.parametrize(("payload", "how"), [("exit", "exit code 7"), ("segfault", "signal 11")])
def test_a_killer_takes_only_its_own_job(payload: str, how: str) -> None:
    """A child that dies spends its own job's attempts; the neighbours are done at their first delivery."""
    queue = handlers.steps_queue
    queue.events.clear()
    (killer,) = publish(queue, payload)
    neighbours = publish(queue, *range(8))
    handlers.steps.run_until_idle(SECONDS)
    reason, error = queue.queue("work").dead.pop(killer)
    assert reason == "max_attempts"
    assert error is not None
    assert (error["type"], error["message"]) == ("ProcessDied", f"the handler's process died: {how}")
    assert sorted(queue.saw("ack")) == sorted(neighbours)
    leases = queue.saw("lease")
    assert [leases.count(message_id) for message_id in neighbours] == [1] * 8
    assert leases.count(killer) == 2


def test_async_handlers_run_in_a_child() -> None:
    """A coroutine function works in a child as well, and its outcome comes back."""
    publish(handlers.async_queue, 1)
    handlers.asynchronous.run_until_idle(SECONDS)
    (pid,) = pids(handlers.async_queue)
    assert pid != os.getpid()


def test_a_child_is_killed_when_its_lease_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that hangs while the queue is out of reach is ended before its lease is."""
    queue = handlers.hang_queue
    pid_file = tmp_path / "pid"
    monkeypatch.setenv("HANG_PID_FILE", str(pid_file))
    publish(queue, 1)
    thread = threading.Thread(target=handlers.hanging.run)
    thread.start()
    try:
        queue.wait_for("extend", 4)  # the child runs it, and its lease is kept
        queue.broken.set()
        (message,) = queue.queue("work").messages.values()
        ends_at = message.lease_until
        assert ends_at is not None
        with queue.changed:
            queue.changed.wait_for(lambda: not alive(pid_file), ends_at - seams.monotonic())
        assert not alive(pid_file)
        assert seams.monotonic() < ends_at + 0.1
        queue.broken.clear()
        queue.wait_for("ack", seconds=SECONDS)
    finally:
        handlers.hanging.stop()
        thread.join(SECONDS)
    assert not thread.is_alive()
    assert not queue.saw("nack")


def test_a_child_is_replaced_after_its_jobs() -> None:
    """``recycle_after=2``: four jobs need two processes, and the worker itself goes on."""
    publish(handlers.worn_queue, *range(4))
    assert handlers.worn.run_until_idle(SECONDS) == 4
    seen = pids(handlers.worn_queue)
    assert len(seen) == 4
    assert len(set(seen)) == 2


def test_a_process_that_cannot_be_replaced_gives_no_finished_job_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the ack of a committed job is under way its slot fails to get ready: nothing is released."""
    readied = threading.Event()
    calls = iter(range(100))

    def warm(self: ThreadRunner) -> None:
        call = next(calls)
        if call == 1:
            raise ChildFailed("no memory for another process")
        if call == 2:
            readied.set()  # what the failure gave back is given back by now

    class SlowAcks(MemoryQueue):
        def ack(self, queue: str, items: Sequence[tuple[str, str]]) -> list[bool | RedriveError]:
            assert readied.wait(SECONDS)
            return super().ack(queue, items)

    monkeypatch.setattr(ThreadRunner, "warm", warm)
    queue = SlowAcks()
    publish(queue, 1)
    worker = Worker(queue, queue="work", wait_seconds=0.2, concurrency=1)
    worker.job(lambda job: None)
    assert worker.run_until_idle(SECONDS) == 1
    assert (len(queue.saw("ack")), queue.saw("release")) == (1, [])


def test_a_handler_that_cannot_be_imported_is_refused() -> None:
    """A lambda or a nested function has no name that a child could import."""
    with pytest.raises(TypeError, match="must be a function of a module"):
        Worker(MemoryQueue(), queue="work", executor="processes").job(lambda job: None)
