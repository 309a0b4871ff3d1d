"""The server is killed under load, again and again: what it acknowledged is done, once."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.database import wait_for
from tests.system.application import QUEUE, Application, WorkerProcess, dead
from tests.system.load import SOUND, Load
from tests.system.servers import SECONDS, ServerProcess

KILLS = 10


@pytest.mark.timeout(150)
def test_a_server_killed_under_load_loses_and_doubles_nothing(urls: tuple[str, str], tmp_path: Path) -> None:
    """Ten SIGKILLs between producers and workers: every acknowledged job has one effect, no other has any."""
    storage, database = urls
    application = Application(database)
    with (
        ServerProcess(storage) as server,
        Load(server.url) as load,
        WorkerProcess(server, application, tmp_path / "one"),
        WorkerProcess(server, application, tmp_path / "two"),
    ):
        for number in range(KILLS):
            load.goes_on(application, f"before kill {number}")
            server.kill()
            server.start()
        with closing(server.client()) as client:
            load.finish(client, application)
            assert dead(client) == {}  # no outage spent a budget
        assert load.verdict(application.effects()) == SOUND


def test_control_a_store_that_forgets_is_found_out(tmp_path: Path) -> None:
    """The control: over a store in memory the same kill loses acknowledged jobs, and the verdict says so."""
    application = Application(f"sqlite:///{tmp_path / 'application.db'}")
    with ServerProcess("memory:") as server:
        with Load(server.url) as load:
            wait_for(lambda: len(load.acknowledged) >= 60, SECONDS, "publishes before the kill")
        server.kill()
        server.start()
        with WorkerProcess(server, application, tmp_path / "one"):
            with closing(server.client()) as client:
                client.call("queue.publish", {"queue": QUEUE, "payload": 1, "job_key": "after"})
            wait_for(application.count, SECONDS, "the effect of a job published after the kill")
    verdict = load.verdict(application.effects())
    assert set(verdict["lost"]) == load.acknowledged
    assert verdict["unexpected"] == ["after"]
