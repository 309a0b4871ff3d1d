"""SIGTERM under load: servers and workers end with code 0 in time, and nothing is lost, doubled or spent."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from tests.database import wait_for
from tests.system.application import QUEUE, Application, WorkerCommand, WorkerProcess, dead, left, runs
from tests.system.load import SOUND, Load
from tests.system.servers import SECONDS, ServeCommand, ServerProcess

STOPS = 4


@pytest.mark.timeout(120)
def test_a_server_stopped_under_load_loses_and_doubles_nothing(urls: tuple[str, str], tmp_path: Path) -> None:
    """Each stop has exit code 0; every acknowledged job has one effect, and no budget was spent."""
    storage, database = urls
    application = Application(database)
    with (
        ServerProcess(storage) as server,
        Load(server.url) as load,
        WorkerProcess(server, application, tmp_path / "one"),
    ):
        for number in range(STOPS):
            load.goes_on(application, f"before stop {number}")
            assert server.stop() == 0
            server.start()
        with closing(server.client()) as client:
            load.finish(client, application)
            assert dead(client) == {}
    assert load.verdict(application.effects()) == SOUND


@pytest.mark.timeout(120)
def test_the_commands_stop_as_well(tmp_path: Path) -> None:
    """``redrive serve`` and ``redrive worker run``: killed once, stopped once, exit code 0, nothing lost."""
    application = Application(f"sqlite:///{tmp_path / 'application.db'}")
    with ServeCommand(f"sqlite:///{tmp_path / 'queue.db'}") as server, Load(server.url) as load:
        with WorkerCommand(server, application, tmp_path / "one"):
            load.goes_on(application, "before both are killed")
            server.kill()
        server.start()
        with WorkerCommand(server, application, tmp_path / "two") as worker:
            load.goes_on(application, "before both are stopped")
            assert worker.stop() == 0
            assert server.stop() == 0
        server.start()
        with WorkerCommand(server, application, tmp_path / "three"), closing(server.client()) as client:
            load.finish(client, application)
            assert dead(client) == {}
    assert load.verdict(application.effects()) == SOUND


@pytest.mark.timeout(120)
def test_workers_stopped_under_load_finish_or_give_back(
    server: ServerProcess, client: ContractTransport, application: Application, tmp_path: Path
) -> None:
    """After each exit (code 0) no lease is left; every job was begun once, at its first attempt."""
    with Load(server.url) as load:
        for number in range(STOPS):
            with WorkerProcess(server, application, tmp_path / f"{number}", TEST_NOTES="1") as worker:
                load.goes_on(application, f"before stop {number}")
                assert worker.stop() == 0
            assert client.call("queue.stats", {"queue": QUEUE})["leased"] == 0
        load.stop()
        with WorkerProcess(server, application, tmp_path / "last", TEST_NOTES="1") as worker:
            wait_for(lambda: left(client) == 0, SECONDS, "an empty queue")
            assert worker.stop() == 0
    assert load.verdict(application.effects()) == SOUND
    begun = [run for folder in tmp_path.iterdir() if folder.is_dir() for run in runs(folder)]
    assert Counter(run["key"] for run in begun) == application.effects()
    assert {run["attempt"] for run in begun} == {1}


def test_what_a_worker_cannot_finish_goes_back_unspent(
    server: ServerProcess, client: ContractTransport, application: Application, tmp_path: Path
) -> None:
    """A handler that outlives the grace is interrupted: code 0, no effect, the attempt given back (K1)."""
    client.publish(QUEUE, [Entry(payload={"do": "hold"}, job_key="held"), Entry(payload=1, job_key="behind")])
    options = {"concurrency": 1, "prefetch": 1, "grace_seconds": 0.2, "visibility_timeout": 30}
    with WorkerProcess(server, application, tmp_path / "one", options, TEST_NOTES="1") as worker:
        wait_for(lambda: runs(tmp_path / "one"), SECONDS, "the held job to begin")
        assert worker.stop() == 0
    assert application.count() == 0
    (tmp_path / "one" / "free").touch()
    with WorkerProcess(server, application, tmp_path / "one", options, TEST_NOTES="1"):
        wait_for(lambda: left(client) == 0, SECONDS, "both jobs to be done")
    assert application.effects() == {"held": 1, "behind": 1}
    begun = sorted((run["key"], run["attempt"]) for run in runs(tmp_path / "one"))
    assert begun == [("behind", 1), ("held", 1), ("held", 1)]


def test_a_worker_stops_in_time_without_its_server(
    server: ServerProcess, client: ContractTransport, application: Application, tmp_path: Path
) -> None:
    """Jobs committed and not acknowledged, others waiting: code 0 in half the time that supervisors give."""
    client.publish(QUEUE, [Entry(payload={"do": "hold"}, job_key=f"job:{n}") for n in range(6)])
    options = {"concurrency": 2, "prefetch": 4, "grace_seconds": 1, "visibility_timeout": 6}
    with WorkerProcess(server, application, tmp_path / "one", options, TEST_NOTES="1") as worker:
        wait_for(lambda: runs(tmp_path / "one"), SECONDS, "a held job to begin")
        wait_for(
            lambda: client.call("queue.stats", {"queue": QUEUE})["leased"] == 6, SECONDS, "all to be leased"
        )
        server.kill()
        (tmp_path / "one" / "free").touch()
        assert worker.stop(15) == 0
    server.start()
    with WorkerProcess(server, application, tmp_path / "one", {"visibility_timeout": 2}):
        wait_for(lambda: left(client) == 0, 2 * SECONDS, "every job to be done")
    assert application.effects() == {f"job:{n}": 1 for n in range(6)}
