"""Producers and relays are killed between commit, publish and note: each committed job is published once.

The queue is paused meanwhile, so that its messages can be counted: receipts would hide a second one.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from redrive.domain.errors import RedriveError
from redrive.ledger import Job, Ledger
from redrive.transports import Entry, Published
from redrive.transports.contract_transport import ContractTransport
from redrive.worker.relay import Relay
from tests.database import wait_for
from tests.system.application import QUEUE, Application, WorkerProcess, insert, left
from tests.system.servers import ROOT, SECONDS, ServerProcess, environment

RELAY_KILLS = 10
AT_ONCE = 4


@pytest.fixture
def paused(client: ContractTransport) -> ContractTransport:
    """The client, whose queue is there and paused."""
    client.call("queue.create", {"name": QUEUE})
    client.call("queue.pause", {"queue": QUEUE})
    return client


def produce(application: Application, *jobs: tuple[str, str]) -> None:
    """Run a producer for each (job key, moment); each kills itself."""

    def one(job: tuple[str, str]) -> int:
        command = [sys.executable, "-m", "tests.system.producer", application.url, *job]
        return subprocess.run(command, cwd=ROOT, env=environment(), timeout=SECONDS, check=False).returncode

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert set(pool.map(one, jobs)) == {-signal.SIGKILL}


def let_claims_end(application: Application) -> None:
    """As if the time of every claim had passed."""
    with closing(application.connect()) as connection:
        connection.execute("update redrive_jobs set relay_after_ms = 0 where relay_after_ms is not null")
        connection.commit()


@pytest.mark.timeout(120)
def test_producers_and_relays_killed_publish_each_committed_job_once(
    server: ServerProcess, paused: ContractTransport, application: Application, tmp_path: Path
) -> None:
    """20 producers die after their COMMIT, 5 before it, 10 relays after publishing and before their note."""
    committed = {f"order:{n}" for n in range(2 * RELAY_KILLS)}
    for number in range(RELAY_KILLS):
        ends = [(f"order:{2 * number}", "after"), (f"order:{2 * number + 1}", "after")]
        produce(application, *ends, *([(f"undone:{number}", "before")] if number % 2 else []))
        with WorkerProcess(
            server, application, tmp_path / f"relay-{number}", REDRIVE_KILL_AT="relay_published"
        ) as relay:
            assert relay.killed_itself()
    assert application.orders() == committed
    assert left(paused) == len(committed)  # published, and planned as far as the ledger knows
    assert application.rows("select count(*) from redrive_jobs where state = 0") == [(len(committed),)]
    let_claims_end(application)
    with WorkerProcess(server, application, tmp_path / "sound"):
        accepted = "select count(*) from redrive_jobs where state = 1 and relay_after_ms is null"
        wait_for(
            lambda: application.rows(accepted) == [(len(committed),)], SECONDS, "every job to be accepted"
        )
        assert left(paused) == len(committed)
        paused.call("queue.resume", {"queue": QUEUE})
        wait_for(lambda: application.count() >= len(committed), SECONDS, "the effects")
        wait_for(lambda: left(paused) == 0, SECONDS, "an empty queue")
    assert application.effects() == dict.fromkeys(committed, 1)


def insert_and_plan(application: Application, job_key: str) -> None:
    """An order and its job in one transaction, without dying."""
    with closing(application.connect()) as connection:
        insert(connection, "orders", job_key)
        Ledger().publish(connection, QUEUE, [Job(job_key, 1)])
        connection.commit()


class Keyless:
    """A transport that forgets the outbox's idempotency keys."""

    def __init__(self, transport: ContractTransport) -> None:
        self._transport = transport

    def publish(self, queue: str, entries: Sequence[Entry]) -> list[Published | RedriveError]:
        """As the port's."""
        bare = [msgspec.structs.replace(entry, idempotency_key=None) for entry in entries]
        return self._transport.publish(queue, bare)


@pytest.mark.parametrize(("keyed", "count"), [(True, 1), (False, 2)])
def test_control_without_the_idempotency_key_a_repeated_publish_is_a_second_message(
    paused: ContractTransport, application: Application, keyed: bool, count: int
) -> None:
    """The control: what keeps a relay's repetition to one message is the key, and nothing else."""
    insert_and_plan(application, "order:1")
    ledger = Ledger(application.url)
    relay = Relay(ledger, paused if keyed else Keyless(paused))  # type: ignore[arg-type]
    assert relay.once() == 1
    with closing(application.connect()) as connection:  # as if the note had never been written
        connection.execute("update redrive_jobs set state = 0, relay_after_ms = 0")
        connection.commit()
    assert relay.once() == 1
    ledger.close()
    assert left(paused) == count
