"""Cases from the field at workers: what a stop, a payload and a producer's transaction do to a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from redrive import connect
from redrive.ledger import Job as Planned
from redrive.ledger import Ledger
from redrive.storage import commands as c
from redrive.storage.conformance import Clock
from redrive.storage.conformance.rig import Rig
from redrive.storage.memory import MemoryEngine
from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from redrive.worker import Job, Worker
from tests.database import wait_for
from tests.system.application import QUEUE, Application, WorkerProcess, dead, insert, left, runs
from tests.system.servers import KEY, SECONDS, ServerProcess

AT_ONCE = {"base_seconds": 0, "max_seconds": 0}


class Order(msgspec.Struct):
    """What a handler wants to be given."""

    number: int


@pytest.fixture(params=["rest", "in process"])
def transport(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractTransport]:
    """A client by each way there is to a queue."""
    if request.param == "rest":
        server: ServerProcess = request.getfixturevalue("server")
        made = server.client()
    else:
        made = connect(f"sqlite:///{tmp_path / 'own.db'}")  # type: ignore[assignment]
    with closing(made):
        yield made


def test_e5_deliveries_are_counted_and_end_by_every_transport(transport: ContractTransport) -> None:
    """Not a flag that says "again": a number that grows, and the limit ends it, nacked or run out."""
    transport.call("queue.create", {"name": QUEUE, "max_retries": 2, "retry_policy": AT_ONCE})
    transport.publish(QUEUE, [Entry(payload=1, job_key="job")])
    seen = []
    for end in ("nacked", "run out", "nacked"):
        (message,) = transport.consume(
            QUEUE, max_messages=1, visibility_timeout=1, wait_seconds=15, consumer_id="test"
        ).messages
        seen.append((message.attempt, message.delivery))
        if end == "nacked":
            transport.nack(QUEUE, message.message_id, message.receipt_handle)
    assert seen == [(1, 1), (2, 2), (3, 3)]
    assert dead(transport)["job"]["reason"] == "max_attempts"


def test_k1_one_rollout_after_the_other_does_not_make_a_job_fail(
    server: ServerProcess, client: ContractTransport, application: Application, tmp_path: Path
) -> None:
    """With a budget of one attempt, stopped twice in the middle of it: the third worker does the job."""
    client.call("queue.create", {"name": QUEUE, "max_retries": 0})
    client.publish(QUEUE, [Entry(payload={"do": "hold"}, job_key="job")])
    folder, options = tmp_path / "runs", {"grace_seconds": 0.1, "visibility_timeout": 30}
    for rollout in range(2):
        with WorkerProcess(server, application, folder, options, TEST_NOTES="1") as worker:
            wait_for(lambda: len(runs(folder)) == rollout + 1, SECONDS, "the job to begin")  # noqa: B023
            assert worker.stop() == 0
    (folder / "free").touch()
    with WorkerProcess(server, application, folder, options, TEST_NOTES="1"):
        wait_for(lambda: left(client) == 0, SECONDS, "the job to be done")
    assert application.effects() == {"job": 1}
    assert [run["attempt"] for run in runs(folder)] == [1, 1, 1]
    assert dead(client) == {}


def test_m3_a_payload_that_cannot_be_read_is_dead_at_once_and_in_nobodys_way(
    server: ServerProcess, client: ContractTransport
) -> None:
    """With attempts left it is not tried again; its bytes are kept as they came, and the next job is done."""
    client.call("queue.create", {"name": QUEUE, "max_retries": 5, "retry_policy": AT_ONCE})
    exact = '{ "number" : "sëven", "number": 1.50 , "x": {} }'
    client.publish(QUEUE, [Entry(payload=msgspec.Raw(exact.encode()), job_key="wrong")])
    client.publish(QUEUE, [Entry(payload={"number": 7}, job_key="right")])
    done: list[int] = []
    worker = Worker(server.url, queue=QUEUE, api_key=KEY, payload=Order, wait_seconds=0.1)

    @worker.job
    def handle(job: Job) -> None:
        done.append(job.payload.number)

    worker.run_until_idle(SECONDS)
    record = dead(client)["wrong"]
    assert (done, record["attempts"], left(client)) == ([7], 1, 0)
    found = client.call("queue.message", {"message_id": record["message_id"]})
    assert found["payload"] == msgspec.json.decode(exact)


def test_p1_a_job_is_not_seen_before_its_producers_commit(
    server: ServerProcess, client: ContractTransport, application: Application, tmp_path: Path
) -> None:
    """While the producer's transaction is open, and after its rollback, there is nothing; then it is done."""
    ledger = Ledger(application.url)
    with closing(ledger), closing(application.connect()) as producer:
        for end in ("rollback", "commit"):
            insert(producer, "orders", f"job:{end}")
            ledger.publish(producer, QUEUE, [Planned(f"job:{end}", 1)])
            assert ledger.job(f"job:{end}") is None  # as every other connection sees it
            getattr(producer, end)()
        with WorkerProcess(server, application, tmp_path / "runs"):
            wait_for(lambda: application.count() == 1, SECONDS, "the job that was committed")
            wait_for(lambda: left(client) == 0, SECONDS, "an empty queue")
    assert application.effects() == {"job:commit": 1}
    assert application.orders() == {"job:commit"}


def test_q1_a_fleet_that_failed_together_does_not_come_back_together() -> None:
    """A hundred nacked in one moment are due at many: jitter is on without being asked for."""
    clock = Clock()
    rig = Rig(MemoryEngine(clock), clock)
    rig.create(retry_policy={"base_seconds": 10.0, "max_seconds": 60.0})
    rig.do(c.Publish("jobs", [c.Entry(b"{}") for _ in range(100)]))
    due = [rig.nack(message).visible_ms for message in rig.lease(count=100)]
    assert len(set(due)) > 50
    rig.create("equal", retry_policy={"base_seconds": 10.0, "max_seconds": 60.0, "jitter": False})
    rig.do(c.Publish("equal", [c.Entry(b"{}") for _ in range(100)]))
    alike = {rig.nack(message).visible_ms for message in rig.lease("equal", count=100)}
    assert len(alike) == 1  # the control: without it they come back together
