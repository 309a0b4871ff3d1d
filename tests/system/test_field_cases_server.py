"""Cases from the field at a running server: what it accepted, counts, tells and bounds.

Each test is named after its case; ``test_field_cases_complete`` says where the others are.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from redrive.domain.errors import PayloadTooLarge
from redrive.domain.limits import BODY_BYTES_MAX
from redrive.transports import Delivery, Entry
from redrive.transports.contract_transport import ContractTransport
from redrive.transports.port import Unreachable
from redrive.transports.rest import open_rest
from redrive.worker import Job, Worker
from tests.database import wait_for
from tests.system.application import QUEUE, Application, WorkerProcess, dead, left, runs
from tests.system.servers import KEY, SECONDS, ServerProcess
from tests.system.test_field_cases import wait_leases

AT_ONCE = {"base_seconds": 0, "max_seconds": 0}


def lease(client: ContractTransport, *, seconds: float = 1, wait_seconds: float = 15) -> list[Delivery]:
    """One message of QUEUE."""
    return list(
        client.consume(
            QUEUE, max_messages=1, visibility_timeout=seconds, wait_seconds=wait_seconds, consumer_id="test"
        ).messages
    )


def stat(client: ContractTransport, name: str, queue: str = QUEUE) -> float:
    """One number of the queue's statistics."""
    return float(client.call("queue.stats", {"queue": queue})[name])


def test_a5_what_was_accepted_outlives_a_kill_right_after_the_answer(server: ServerProcess) -> None:
    """Three times: publish, the answer, SIGKILL. (A power cut: ``tests/proof/test_power_cut.py``.)"""
    for number in range(3):
        with closing(server.client()) as client:
            client.publish(QUEUE, [Entry(payload=number, job_key=f"job:{number}")])
            server.kill()
            server.start()
            assert left(client) == number + 1


def test_a7_a_terminal_failure_lands_in_the_dead_letters_with_its_reason(
    server: ServerProcess, client: ContractTransport, application: Application, tmp_path: Path
) -> None:
    """The queue alone counts attempts: the worker has no limit of its own after which it would delete."""
    client.call("queue.create", {"name": QUEUE, "max_retries": 3, "retry_policy": AT_ONCE})
    client.publish(QUEUE, [Entry(payload={"do": "fail"}, job_key="job")])
    with WorkerProcess(server, application, tmp_path / "runs", TEST_NOTES="1"):
        wait_for(lambda: dead(client), SECONDS, "the job to be dead")
    record = dead(client)["job"]
    assert (record["reason"], record["error"]["message"]) == ("max_attempts", "the provider is away")
    assert [run["attempt"] for run in runs(tmp_path / "runs")] == [1, 2, 3, 4]
    assert left(client) == 0


def test_a9_leases_that_run_out_end_where_nacks_end(client: ContractTransport) -> None:
    """Of two messages one is nacked and one never answered for: both are dead after as many deliveries."""
    client.call("queue.create", {"name": QUEUE, "max_retries": 1, "retry_policy": AT_ONCE})
    client.publish(QUEUE, [Entry(payload=1, job_key=key) for key in ("nacked", "silent")])
    deliveries = {"nacked": 0, "silent": 0}
    while sum(deliveries.values()) < 4:
        for message in lease(client):
            deliveries[message.job_key] += 1
            if message.job_key == "nacked":
                client.nack(QUEUE, message.message_id, message.receipt_handle)
    wait_for(lambda: len(dead(client)) == 2, SECONDS, "both to be dead")
    assert deliveries == {"nacked": 2, "silent": 2}
    reasons = {key: record["reason"] for key, record in dead(client).items()}
    assert reasons == {"nacked": "max_attempts", "silent": "lease_expired"}


def test_b9_a_stopping_worker_gives_nothing_back_that_still_runs(
    server: ServerProcess, client: ContractTransport, application: Application, tmp_path: Path
) -> None:
    """Stopped in the middle of a job, beside an idle worker: it is finished once, by the one who began it."""
    client.publish(QUEUE, [Entry(payload={"do": "hold"}, job_key="job")])
    folder, options = tmp_path / "runs", {"visibility_timeout": 1}
    with WorkerProcess(server, application, folder, options, TEST_NOTES="1") as first:
        wait_for(lambda: runs(folder), SECONDS, "the job to begin")
        with WorkerProcess(server, application, folder, options, TEST_NOTES="1"):
            os.kill(first.pid, signal.SIGTERM)
            wait_leases(client, 3)
            assert first.alive()
            (folder / "free").touch()
            assert first.wait() == 0
            wait_for(lambda: left(client) == 0, SECONDS, "the job to be done")
    assert application.effects() == {"job": 1}
    (run,) = runs(folder)
    assert run["pid"] == first.pid


def test_c3_two_boots_on_one_machine_are_two_consumers(
    server: ServerProcess, client: ContractTransport, application: Application, tmp_path: Path
) -> None:
    """The records of a job that kills its workers name each of them, though their host is the same."""
    client.call("queue.create", {"name": QUEUE, "max_retries": 3, "retry_policy": AT_ONCE})
    client.publish(QUEUE, [Entry(payload={"do": "die"}, job_key="killer")])
    for _ in range(2):
        with WorkerProcess(server, application, tmp_path / "runs", {"visibility_timeout": 1}) as worker:
            assert worker.killed_itself()
    (found,) = client.call("queue.messages", {"queue": QUEUE})["items"]

    def consumers() -> set[str]:
        record = client.call("queue.message", {"message_id": found["message_id"]})
        return {attempt["consumer_id"] for attempt in record["attempts"]}

    wait_for(lambda: len(consumers()) == 2, SECONDS, "the records of both deliveries")


def test_e3_every_way_to_come_back_spends_one_budget_and_a_leased_job_can_be_cancelled(
    client: ContractTransport,
) -> None:
    """Nacked, run out and nacked: the third attempt is the last, whatever ended the others."""
    client.call("queue.create", {"name": QUEUE, "max_retries": 2, "retry_policy": AT_ONCE})
    client.publish(QUEUE, [Entry(payload=1, job_key="job")])
    attempts = []
    for end in ("nack", "expire", "release", "nack"):
        (message,) = lease(client)
        attempts.append(message.attempt)
        handle = (QUEUE, message.message_id, message.receipt_handle)
        if end == "nack":
            client.nack(*handle)
        elif end == "release":
            client.release(*handle)
    assert attempts == [1, 2, 3, 3]  # what was given back untouched is not spent
    assert dead(client)["job"]["reason"] == "max_attempts"
    client.publish(QUEUE, [Entry(payload=1, job_key="other")])
    (message,) = lease(client, seconds=30)
    answer = client.call("queue.cancel", {"queue": QUEUE, "message_id": message.message_id})
    assert answer == {"cancelled": False, "requested": True}
    client.nack(QUEUE, message.message_id, message.receipt_handle)  # with budget left, and yet it is over
    assert lease(client, wait_seconds=0) == []
    wait_for(lambda: left(client) == 0, SECONDS, "the cancelled job to be gone from the statistics")
    assert set(dead(client)) == {"job"}


def test_i1_a_worker_whose_server_went_away_consumes_again_by_itself(
    server: ServerProcess, client: ContractTransport, application: Application, tmp_path: Path
) -> None:
    """Idle or at work when the server was killed, twice: it is the same process that goes on."""
    with WorkerProcess(server, application, tmp_path / "runs", TEST_NOTES="1") as worker:
        for number in range(3):
            client.publish(QUEUE, [Entry(payload=1, job_key=f"job:{number}")])
            wait_for(lambda: application.count() == number + 1, SECONDS, "the job")  # noqa: B023
            server.kill()
            server.start()
        assert {run["pid"] for run in runs(tmp_path / "runs")} == {worker.pid}


def test_i5_a_call_ends_at_its_deadline_though_the_connection_stays_open(server: ServerProcess) -> None:
    """The server is stopped in the middle of a long poll: the wait ends, and the same client goes on."""
    with closing(open_rest(server.url, KEY, deadline_seconds=2.0)) as client:
        client.call("queue.create", {"name": QUEUE})
        server.send(signal.SIGSTOP)
        try:
            with pytest.raises(Unreachable):
                client.call("queue.stats", {"queue": QUEUE})
        finally:
            server.send(signal.SIGCONT)
        assert client.call("queue.get", {"queue": QUEUE})["state"] == "active"


def test_k3_a_grace_beyond_32_bits_of_anything_does_not_end_at_once(
    server: ServerProcess, client: ContractTransport
) -> None:
    """Nor does the stop fail: what runs when it comes is finished, and then nothing is waited for."""
    for seconds in (2.0**31, 2.0**32 + 1, 1e12):
        client.publish(QUEUE, [Entry(payload=1)])
        done: list[str] = []
        worker = Worker(server.url, queue=QUEUE, api_key=KEY, grace_seconds=seconds, wait_seconds=0.1)
        worker.job(stopping_first(worker, done))
        assert worker.run() == 0
        assert (len(done), left(client)) == (1, 0)


def stopping_first(worker: Worker, done: list[str]) -> Callable[[Job], None]:
    """A handler that stops its worker and goes on when that has been heard."""

    def handle(job: Job) -> None:
        worker.stop()
        shift = worker._shift
        assert shift is not None
        wait_for(shift.commands.empty, SECONDS, "the stop to be heard")
        done.append(job.key)

    return handle


def test_n1_a_payload_above_the_limit_is_refused_where_it_is_published(client: ContractTransport) -> None:
    """413 names the limit and the size; a reference to the same bytes elsewhere is a payload like any."""
    client.call("queue.create", {"name": QUEUE})
    text = "x" * BODY_BYTES_MAX
    (refused,) = client.publish(QUEUE, [Entry(payload=text, job_key="large")])
    assert isinstance(refused, PayloadTooLarge)
    assert str(BODY_BYTES_MAX) in refused.message
    assert str(BODY_BYTES_MAX + 2) in refused.message  # with its quotes
    assert left(client) == 0
    client.publish(QUEUE, [Entry(payload={"claim": "store://large/1", "bytes": len(text)}, job_key="large")])
    assert left(client) == 1


def test_o1_the_age_of_the_oldest_due_job_tells_a_stall_from_a_backlog(client: ContractTransport) -> None:
    """It grows while nobody works, does not count what is not due, and is 0 once drained."""
    client.call("queue.publish", {"queue": QUEUE, "payload": 1, "delay_seconds": 3_600})
    wait_for(lambda: stat(client, "delayed") == 1, SECONDS, "the delayed job in the statistics")
    assert stat(client, "oldest_ready_age_seconds") == 0
    client.publish(QUEUE, [Entry(payload=1)])
    first = wait_for(lambda: stat(client, "oldest_ready_age_seconds"), SECONDS, "an age")
    wait_for(lambda: stat(client, "oldest_ready_age_seconds") > first, SECONDS, "the age to grow")
    (message,) = lease(client)
    client.ack(QUEUE, [(message.message_id, message.receipt_handle)])
    wait_for(lambda: stat(client, "oldest_ready_age_seconds") == 0, SECONDS, "the age to be 0")


def test_o3_a_pile_of_dead_letters_is_told_from_one_that_grows(client: ContractTransport) -> None:
    """The inflow of the last minute beside the depth, and the age of the oldest."""
    client.publish(QUEUE, [Entry(payload=1) for _ in range(3)])
    for _ in range(2):
        (message,) = lease(client)
        request = {"message_id": message.message_id, "receipt_handle": message.receipt_handle}
        client.call("queue.dead_letter", {"queue": QUEUE, "reason": "by hand", **request})
    wait_for(lambda: stat(client, "dead_per_minute") == 2, SECONDS, "the inflow of dead letters")
    assert stat(client, "dead") == 2
    wait_for(lambda: stat(client, "oldest_dead_age_seconds") > 0, SECONDS, "the age of the oldest")


UNSTORABLE = ("a\x00b", "\x00", "x" * 100_000, "\ufffe\U0010ffff")


def test_m1_an_error_can_always_be_stored(urls: tuple[str, str]) -> None:
    """NUL in an error's text, and in a payload: the job ends as dead, and the payload is as it was."""
    with ServerProcess(urls[0]) as server, closing(server.client()) as client:
        client.call("queue.create", {"name": QUEUE, "max_retries": 0})
        for number, text in enumerate(UNSTORABLE):
            client.publish(QUEUE, [Entry(payload={"text": "a\x00b"}, job_key=f"job:{number}")])
            (leased,) = lease(client, seconds=30)
            error = {"type": f"Boom{text[:3]}", "message": text, "stack": text}
            client.nack(QUEUE, leased.message_id, leased.receipt_handle, error=error)
            record = dead(client)[f"job:{number}"]
            assert record["reason"] == "max_attempts"
            assert "\x00" not in json.dumps(record["error"], ensure_ascii=False)
            found = client.call("queue.message", {"message_id": leased.message_id})
            assert found["payload"] == {"text": "a\x00b"}
