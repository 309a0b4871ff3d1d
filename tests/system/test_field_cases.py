"""Kinds of faults that users of other job systems reported, played with real processes.

Each test is named after its case; ``test_field_cases_complete`` knows where all of them are. Some are shown
at length elsewhere: E1 and E3 in test_steady_states, I1 in test_database_kills, K1 in test_stopped, P1 in
test_outbox.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from redrive.domain.errors import StaleReceipt
from redrive.ledger import Ledger
from redrive.transports import Delivery, Entry
from redrive.transports.contract_transport import ContractTransport
from tests.database import wait_for
from tests.system.application import QUEUE, Application, WorkerProcess, dead, left, runs
from tests.system.servers import SECONDS, ServerProcess

AT_ONCE = {"base_seconds": 0, "max_seconds": 0}
MINUTES_10_MS = 600_000
Start = Callable[..., WorkerProcess]


@pytest.fixture
def start(server: ServerProcess, application: Application, tmp_path: Path) -> Start:
    """Start a worker that notes its runs in the folder ``runs`` and has a visibility timeout of 1 s."""

    def started(options: dict[str, object] | None = None, **variables: str) -> WorkerProcess:
        short = {"visibility_timeout": 1, **(options or {})}
        return WorkerProcess(server, application, tmp_path / "runs", short, TEST_NOTES="1", **variables)

    return started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the workers note their runs and look for signals."""
    return tmp_path / "runs"


def wait_begun(folder: Path, count: int = 1) -> None:
    """Wait until the handler was called ``count`` times."""
    wait_for(lambda: len(runs(folder)) >= count, SECONDS, f"{count} calls of the handler")


def wait_done(client: ContractTransport) -> None:
    """Wait until the queue is empty."""
    wait_for(lambda: left(client) == 0, SECONDS, "an empty queue")


def wait_leases(client: ContractTransport, count: int) -> None:
    """Wait until ``count`` leases of 1 s, one after the other, have begun and run out at the server."""
    client.call("queue.create", {"name": "clock", "max_retries": 100, "retry_policy": AT_ONCE})
    client.publish("clock", [Entry(payload=1)])
    for number in range(count + 1):
        (tick,) = consume(client, "clock")
        assert tick.previous == ("lost" if number else None)
    client.ack("clock", [(tick.message_id, tick.receipt_handle)])


def consume(client: ContractTransport, queue: str = QUEUE, *, wait_seconds: float = 15) -> list[Delivery]:
    """One message for a second, waiting for it."""
    return client.consume(
        queue, max_messages=1, visibility_timeout=1, wait_seconds=wait_seconds, consumer_id="test"
    ).messages


@pytest.mark.parametrize("how", ["delayed", "postponed"])
def test_a1_a_removed_worker_takes_no_future_work_along(
    client: ContractTransport, application: Application, folder: Path, start: Start, how: str
) -> None:
    """What is due later is the store's, not a worker's: any other one does it at its time."""
    entry = Entry(payload={"do": "later"} if how == "postponed" else 1, job_key="later")
    soon = Entry(payload=1, job_key="soon")
    if how == "delayed":
        client.call("queue.publish", {"queue": QUEUE, "payload": 1, "job_key": "later", "delay_seconds": 1})
    else:
        client.publish(QUEUE, [entry])
    client.publish(QUEUE, [soon])
    with start():
        wait_for(lambda: stats(client)["delayed"] == 1, SECONDS, "the job to be due later")
        wait_for(lambda: application.count() == 1, SECONDS, "the job that is due now")
    with start():
        wait_done(client)
    assert application.effects() == {"soon": 1, "later": 1}


def stats(client: ContractTransport) -> dict[str, int]:
    """The queue's statistics."""
    found: dict[str, int] = client.call("queue.stats", {"queue": QUEUE})
    return found


def test_a3_a_crash_hides_a_message_for_its_lease_only(
    client: ContractTransport, application: Application, folder: Path, start: Start
) -> None:
    """The lease of a dead worker ends by itself, is counted, and the next worker is told."""
    client.publish(QUEUE, [Entry(payload={"do": "hold"}, job_key="job")])
    with start():
        wait_begun(folder)
    (folder / "free").touch()
    with start():
        wait_done(client)
    assert application.effects() == {"job": 1}
    wait_for(lambda: stats(client)["expired_total"] == 1, SECONDS, "the expiry in the statistics")
    assert [run["delivery"] for run in runs(folder)] == [1, 2]


def test_a11_a_queue_outlives_its_consumers(
    server: ServerProcess, client: ContractTransport, application: Application, folder: Path, start: Start
) -> None:
    """All consumers die at once, then the server: the queue and its work are there."""
    client.publish(QUEUE, [Entry(payload={"do": "hold"}, job_key=f"job:{n}") for n in range(20)])
    with start(), start():
        wait_begun(folder)
    server.kill()
    server.start()
    assert client.call("queue.get", {"queue": QUEUE})["state"] == "active"
    assert left(client) == 20
    (folder / "free").touch()
    with start():
        wait_done(client)
    assert application.effects() == {f"job:{n}": 1 for n in range(20)}


@pytest.mark.parametrize("kind", ["hold", "spin", "hold in a coroutine"])
def test_b1_b3_a_job_longer_than_its_lease_runs_once(
    client: ContractTransport, application: Application, folder: Path, start: Start, kind: str
) -> None:
    """Held over three lengths of its lease beside an idle worker; also by a handler that never waits."""
    wish, _, coroutine = kind.partition(" in a ")
    client.publish(QUEUE, [Entry(payload={"do": wish}, job_key="long")])
    with start(TEST_ASYNC="1" if coroutine else ""), start():
        wait_begun(folder)
        wait_leases(client, 3)
        assert len(runs(folder)) == 1
        (folder / "free").touch()
        wait_done(client)
    assert application.effects() == {"long": 1}
    assert len(runs(folder)) == 1


def test_b1_control_without_heartbeats_a_long_job_is_begun_again(client: ContractTransport) -> None:
    """The control: a consumer that does not extend its lease has company at each of its ends."""
    client.call("queue.create", {"name": QUEUE, "retry_policy": AT_ONCE})
    client.publish(QUEUE, [Entry(payload=1)])
    assert [consume(client)[0].delivery for _ in range(3)] == [1, 2, 3]


def test_b5_a_stalled_worker_that_comes_back_finishes_nothing(
    client: ContractTransport, application: Application, folder: Path, start: Start
) -> None:
    """Stopped, given up and continued, it neither commits nor settles, and frees no place in flight twice."""
    client.call("queue.create", {"name": QUEUE, "max_in_flight": 1, "retry_policy": AT_ONCE})
    client.publish(QUEUE, [Entry(payload=1, job_key="a")])
    with start(REDRIVE_PAUSE_AT="before_handler") as stalled:
        wait_for(lambda: list(folder.glob("before_handler-*")), SECONDS, "the first job to begin")
        os.kill(stalled.pid, signal.SIGSTOP)
        (second,) = consume(client)  # once the stalled one's lease has ended
        assert (second.job_key, second.previous) == ("a", "lost")
        client.extend(QUEUE, second.message_id, second.receipt_handle, 30)
        client.publish(QUEUE, [Entry(payload=1, job_key="b")])
        (folder / "go").touch()
        os.kill(stalled.pid, signal.SIGCONT)
        wait_leases(client, 2)  # it has had its time to do harm
        assert stats(client)["leased"] == 1
        assert application.count() == 0
        assert client.ack(QUEUE, [(second.message_id, second.receipt_handle)]) == [True]
        wait_done(client)
    assert application.effects() == {"b": 1}  # "a" was the second consumer's, which has no effects here


def test_b5_an_old_receipt_frees_no_place(client: ContractTransport) -> None:
    """With one place in flight, a settle by the lost delivery is refused and lets nobody else in."""
    client.call("queue.create", {"name": QUEUE, "max_in_flight": 1, "retry_policy": AT_ONCE})
    client.publish(QUEUE, [Entry(payload=1, job_key="a")])
    (first,) = consume(client)
    (second,) = consume(client)
    assert (first.delivery, second.delivery) == (1, 2)
    client.publish(QUEUE, [Entry(payload=1, job_key="b")])
    client.extend(QUEUE, second.message_id, second.receipt_handle, 30)
    for _ in range(2):
        (refused,) = client.ack(QUEUE, [(first.message_id, first.receipt_handle)])
        assert isinstance(refused, StaleReceipt)
        with pytest.raises(StaleReceipt):
            client.release(QUEUE, first.message_id, first.receipt_handle)
    assert consume(client, wait_seconds=0) == []


def test_b7_a_slow_success_is_not_hidden_by_the_second_run(
    client: ContractTransport, application: Application, folder: Path, start: Start
) -> None:
    """Committed and then stalled: the next delivery finds the receipt, and the ledger shows both."""
    client.call("queue.create", {"name": QUEUE, "retry_policy": AT_ONCE})
    client.publish(QUEUE, [Entry(payload=1, job_key="job")])
    with start(REDRIVE_PAUSE_AT="before_ack") as slow:
        wait_for(lambda: list(folder.glob("before_ack-*")), SECONDS, "the commit")
        os.kill(slow.pid, signal.SIGSTOP)
        with start():
            wait_done(client)
        (folder / "go").touch()
        os.kill(slow.pid, signal.SIGCONT)
        assert slow.stop() == 0
    assert application.effects() == {"job": 1}
    ledger = Ledger(application.url)
    record, attempts = ledger.job("job"), ledger.attempts("job")
    ledger.close()
    assert record is not None
    assert record.state == "completed"
    outcomes = Counter(attempt.outcome for attempt in attempts)
    assert (outcomes["done"], outcomes["duplicate"]) == (1, 1)


@pytest.mark.timeout(90)
def test_c1_many_lost_leases_all_come_back(client: ContractTransport) -> None:
    """More leases end together than a slice of the reaper holds, some of them dead: none is left behind."""
    client.call("queue.create", {"name": QUEUE, "max_retries": 0})
    client.call("queue.create", {"name": "patient", "retry_policy": AT_ONCE})
    for queue, count in ((QUEUE, 700), ("patient", 700)):
        client.publish(queue, [Entry(payload=1) for _ in range(count)])
        leased = client.consume(
            queue, max_messages=1000, visibility_timeout=1, wait_seconds=0, consumer_id="test"
        )
        assert len(leased.messages) == count
    wait_for(lambda: len(dead(client)) == 700, SECONDS, "every lease of the first queue to end")
    wait_for(
        lambda: client.call("queue.stats", {"queue": "patient"})["ready"] == 700,
        SECONDS,
        "every lease of the second queue to end",
    )
    assert stats(client)["leased"] == 0


def test_c9_e1_a_redriven_process_killer_has_a_whole_budget(
    client: ContractTransport, application: Application, folder: Path, start: Start
) -> None:
    """Dead by lost leases and sent back, it is lost again just as often before it is dead again."""
    client.call("queue.create", {"name": QUEUE, "max_retries": 1, "retry_policy": AT_ONCE})
    client.publish(QUEUE, [Entry(payload={"do": "die"}, job_key="killer")])
    for _ in range(2):
        for _ in range(2):
            with start() as worker:
                assert worker.killed_itself()
        wait_for(lambda: dead(client), SECONDS, "the killer to be dead")
        assert dead(client)["killer"]["reason"] == "lease_expired"
        assert client.call("queue.dlq.redrive", {"queue": QUEUE, "reason": "again"})["redriven"] == 1
    (folder / "mended").touch()
    with start():
        wait_done(client)
    assert application.effects() == {"killer": 1}
    begun = [(run["attempt"], run["delivery"]) for run in runs(folder)]
    assert begun == [(1, 1), (2, 2), (1, 3), (2, 4), (1, 5)]


def test_f1_a_lease_is_renewed_up_to_its_cap_only(
    client: ContractTransport, application: Application, folder: Path, start: Start
) -> None:
    """Over several lengths it is kept; at the queue's cap it ends, and the worker commits nothing then."""
    again = {"max_lease_seconds": 4, "max_retries": 1, "retry_policy": AT_ONCE}
    client.call("queue.create", {"name": QUEUE, **again})
    client.publish(QUEUE, [Entry(payload={"do": "outlive"}, job_key="job")])
    with start({"concurrency": 1}):
        wait_begun(folder)
        wait_leases(client, 2)
        assert len(runs(folder)) == 1
        wait_for((folder / "lapsed").exists, SECONDS, "the lease to end at its cap")
        (folder / "mended").touch()
        wait_done(client)
    assert application.effects() == {"job": 1}
    assert [run["attempt"] for run in runs(folder)] == [1, 2]


def test_f3_a_worker_that_cannot_extend_stops_before_the_end(
    server: ServerProcess, client: ContractTransport, application: Application, folder: Path, start: Start
) -> None:
    """With the server gone the lease counts as lost in time: nothing is committed, another delivery is."""
    client.publish(QUEUE, [Entry(payload={"do": "outlive"}, job_key="job")])
    with start():
        wait_begun(folder)
        server.kill()
        wait_for((folder / "lapsed").exists, SECONDS, "the worker to give its lease up")
        (folder / "mended").touch()
        server.start()
        wait_done(client)
    assert application.effects() == {"job": 1}
    ledger = Ledger(application.url)
    done = [attempt.delivery for attempt in ledger.attempts("job") if attempt.outcome == "done"]
    ledger.close()
    assert len(done) == 1
    assert done[0] > 1


@pytest.mark.timeout(90)
def test_l1_workers_with_wrong_clocks_share_a_queue(
    client: ContractTransport, application: Application, folder: Path, start: Start
) -> None:
    """Ten minutes fast and ten minutes slow: no lease is stolen, no job is begun twice, none too early."""
    keys = [f"job:{number}" for number in range(60)]
    client.publish(QUEUE, [Entry(payload={"do": "hold"}, job_key="long")])
    with start(TEST_CLOCK_AHEAD_MS=str(MINUTES_10_MS)):
        wait_begun(folder)
        client.publish(QUEUE, [Entry(payload=1, job_key=key) for key in keys])
        with start(TEST_CLOCK_AHEAD_MS=str(-MINUTES_10_MS)):
            wait_leases(client, 2)
            (folder / "free").touch()
            wait_done(client)
    assert application.effects() == dict.fromkeys([*keys, "long"], 1)
    assert {run["attempt"] for run in runs(folder)} == {1}
    assert len(runs(folder)) == len(keys) + 1
