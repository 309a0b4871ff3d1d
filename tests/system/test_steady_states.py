"""Promises in their worst steady states: every job fails, a server back after an hour."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from redrive import seams
from redrive.transports import Delivery, Entry
from redrive.transports.contract_transport import ContractTransport
from tests.database import wait_for
from tests.system.application import QUEUE, Application, WorkerProcess, connect, dead, left, runs
from tests.system.servers import SECONDS, ServerProcess

JOBS = 150
RETRIES = 2
HOUR_MS = 3_600_000
AT_ONCE = {"base_seconds": 0, "max_seconds": 0}


@pytest.mark.timeout(90)
def test_all_jobs_failing_spend_their_budgets_exactly(
    server: ServerProcess, client: ContractTransport, application: Application, tmp_path: Path
) -> None:
    """Each is begun 1 + retries times, then dead with its reason; mended and redriven, each is done once."""
    client.call("queue.create", {"name": QUEUE, "max_retries": RETRIES, "retry_policy": AT_ONCE})
    keys = [f"job:{number}" for number in range(JOBS)]
    client.publish(QUEUE, [Entry(payload={"do": "fail"}, job_key=key) for key in keys])
    folder = tmp_path / "one"
    with WorkerProcess(server, application, folder, {"concurrency": 8}, TEST_NOTES="1") as worker:
        wait_for(lambda: len(dead(client)) == JOBS, SECONDS, "every job to be dead")
        begun = Counter((run["key"], run["attempt"]) for run in runs(folder))
        assert begun == {(key, n): 1 for key in keys for n in range(1, RETRIES + 2)}
        assert {item["reason"] for item in dead(client).values()} == {"max_attempts"}
        assert application.count() == left(client) == 0
        (folder / "mended").touch()
        answer = client.call("queue.dlq.redrive", {"queue": QUEUE, "max_messages": JOBS, "reason": "mended"})
        assert answer["redriven"] == JOBS
        wait_for(lambda: application.count() >= JOBS, SECONDS, "every effect")
        wait_for(lambda: left(client) == 0, SECONDS, "an empty queue")
        assert worker.alive()
    assert application.effects() == dict.fromkeys(keys, 1)
    assert dead(client) == {}


def leased(client: ContractTransport) -> int:
    """How many messages are leased."""
    return int(client.call("queue.stats", {"queue": QUEUE})["leased"])


def consume(client: ContractTransport, *, visibility_timeout: float) -> list[Delivery]:
    """Up to ten messages, waiting for the first."""
    return client.consume(
        QUEUE,
        max_messages=10,
        visibility_timeout=visibility_timeout,
        wait_seconds=5,
        consumer_id="test",
    ).messages


def back_later(server: ServerProcess, gap_ms: int, *, forged: bool = False) -> None:
    """Kill the server and start it again with the store's clock ``gap_ms`` further on.

    ``forged``: as if the last liveness tick had been written right before the new start.
    """
    server.kill()
    tick_ms = seams.wall_ms() + gap_ms + 2_500  # it may take up to 7.5 s to start
    forge = f"update clock set tick_ms = {tick_ms}"
    if server.storage.startswith("sqlite"):
        if forged:
            with closing(connect(server.storage)) as connection:
                connection.execute(forge)
                connection.commit()
        server.start(TEST_CLOCK_AHEAD_MS=str(gap_ms))
        return
    with closing(connect(server.storage)) as connection:
        connection.execute("set search_path to redrive")
        connection.execute(
            "create or replace function redrive_now_ms() returns bigint language sql volatile as "
            f"$$ select floor(extract(epoch from clock_timestamp()) * 1000)::bigint + {gap_ms} $$"
        )
        if forged:
            connection.execute(forge)
        connection.commit()
    server.start()


def reaped(client: ContractTransport) -> None:
    """Wait until the server has ended a lease that was too old: its reaper looked at all the others too."""
    client.publish("other", [Entry(payload=1)])
    for _ in range(2):
        found = client.consume(
            "other", max_messages=1, visibility_timeout=1, wait_seconds=15, consumer_id="test"
        ).messages
        assert len(found) == 1
    assert found[0].previous == "lost"


def test_a_server_back_after_an_hour_spends_no_budget(urls: tuple[str, str]) -> None:
    """A lease of 30 s survives an outage of an hour; its holder acknowledges it as if nothing had been."""
    with ServerProcess(urls[0]) as server, closing(server.client()) as client:
        client.call("queue.create", {"name": QUEUE, "max_retries": 0})
        client.publish(QUEUE, [Entry(payload=1, job_key="held"), Entry(payload=1, job_key="done")])
        first, second = consume(client, visibility_timeout=30)
        back_later(server, HOUR_MS)
        reaped(client)
        assert dead(client) == {}
        assert leased(client) == 2
        assert client.ack(QUEUE, [(first.message_id, first.receipt_handle)]) == [True]
        client.nack(QUEUE, second.message_id, second.receipt_handle, error={"message": "its own failure"})
        assert [item["reason"] for item in dead(client).values()] == ["max_attempts"]


def test_control_without_the_tick_an_hour_spends_the_budget(urls: tuple[str, str]) -> None:
    """The control: where the liveness tick shows no outage, the same hour ends the lease of its holder."""
    with ServerProcess(urls[0]) as server, closing(server.client()) as client:
        client.call("queue.create", {"name": QUEUE, "max_retries": 0})
        client.publish(QUEUE, [Entry(payload=1, job_key="held")])
        assert len(consume(client, visibility_timeout=30)) == 1
        back_later(server, HOUR_MS, forged=True)
        reaped(client)
        assert [item["reason"] for item in dead(client).values()] == ["lease_expired"]
