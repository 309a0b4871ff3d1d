"""Workers are killed at the two worst places, twenty times each: one effect a job key."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from tests.database import wait_for
from tests.system.application import QUEUE, Application, WorkerProcess, dead, left
from tests.system.servers import SECONDS, ServerProcess

KILLS = 20
CONTROL_KILLS = 4
AT_ONCE = 4
BATCH = 10  # jobs published for each kill


class Killing:
    """Publishes jobs and sends workers in that kill themselves at ``point``, ``kills`` of them."""

    def __init__(self, server: ServerProcess, application: Application, client: ContractTransport) -> None:
        self._server, self._application, self._client = server, application, client
        again = {"base_seconds": 0, "max_seconds": 0}  # many lost workers are forgiven, and repeated at once
        client.call("queue.create", {"name": QUEUE, "max_retries": 500, "retry_policy": again})

    def run(self, folder: Path, point: str, kills: int, **variables: str) -> list[str]:
        """The keys published. Every worker has died by SIGKILL when this returns."""
        keys = [f"{point}:{number}" for number in range(kills * BATCH)]
        self._client.publish(QUEUE, [Entry(payload=1, job_key=key) for key in keys])

        def one(number: int) -> bool:
            # one job at a time: each death is at its own job, and does not find the others' receipts
            with WorkerProcess(
                self._server,
                self._application,
                folder / f"{point}-{number}",
                {"concurrency": 1, "prefetch": 2, "visibility_timeout": 1},
                REDRIVE_KILL_AT=point,
                **variables,
            ) as worker:
                return worker.killed_itself()

        with ThreadPoolExecutor(AT_ONCE) as pool:
            assert all(pool.map(one, range(kills)))
        return keys

    def finish(self, folder: Path, **variables: str) -> None:
        """A sound worker takes what is left, until the queue is empty."""
        options = {"concurrency": 4, "visibility_timeout": 2}
        with WorkerProcess(self._server, self._application, folder / "last", options, **variables) as worker:
            wait_for(lambda: left(self._client) == 0, SECONDS, "an empty queue")
            assert worker.stop() == 0
        assert dead(self._client) == {}


@pytest.fixture
def killing(server: ServerProcess, application: Application, client: ContractTransport) -> Killing:
    """What kills, with server and ledger on SQLite."""
    return Killing(server, application, client)


@pytest.mark.timeout(150)
@pytest.mark.parametrize("point", ["before_commit", "before_ack"])
def test_twenty_killed_workers_leave_one_effect_a_key(
    urls: tuple[str, str], tmp_path: Path, point: str
) -> None:
    """Before the commit nothing has happened yet; after it, the receipt refuses the second delivery."""
    storage, database = urls
    application = Application(database)
    with ServerProcess(storage) as server, closing(server.client()) as client:
        killing = Killing(server, application, client)
        keys = killing.run(tmp_path, point, KILLS)
        killing.finish(tmp_path)
    assert application.effects() == dict.fromkeys(keys, 1)
    refused = application.rows("select count(*) from redrive_attempts where outcome = 'duplicate'")
    assert refused == [(KILLS if point == "before_ack" else 0,)]


@pytest.mark.timeout(90)
def test_control_without_receipts_the_same_kills_double(
    killing: Killing, application: Application, tmp_path: Path
) -> None:
    """The control: every job that was committed and not acknowledged is done twice, and none is lost."""
    keys = killing.run(tmp_path, "before_ack", CONTROL_KILLS, REDRIVE_UNSAFE="no-receipts")
    killing.finish(tmp_path, REDRIVE_UNSAFE="no-receipts")
    effects = application.effects()
    assert set(effects) == set(keys)
    assert sum(effects.values()) - len(keys) == CONTROL_KILLS


@pytest.mark.timeout(90)
def test_control_acknowledged_first_the_same_kills_lose(
    killing: Killing, application: Application, tmp_path: Path
) -> None:
    """The control: every job that was acknowledged and not committed is lost, and none is done twice."""
    keys = killing.run(tmp_path, "before_commit", CONTROL_KILLS, REDRIVE_UNSAFE="ack-first")
    killing.finish(tmp_path)
    effects = application.effects()
    assert len(set(keys) - set(effects)) == CONTROL_KILLS
    assert max(effects.values()) == 1
