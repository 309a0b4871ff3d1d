"""PostgreSQL itself is killed under load, below the server and below the workers' ledger at once."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.database import PostgresServer, postgres_missing
from tests.system.application import Application, WorkerProcess, dead
from tests.system.load import SOUND, Load
from tests.system.servers import ServerProcess

KILLS = 3


@pytest.mark.skipif(postgres_missing() != "", reason=postgres_missing())
@pytest.mark.timeout(150)
def test_a_killed_database_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Server and workers go on by themselves when it is back; every acknowledged job has one effect (I1)."""
    with (
        PostgresServer() as postgres,
        postgres.fresh_database() as queue_url,
        postgres.fresh_database() as application_url,
        ServerProcess(queue_url) as server,
    ):
        application = Application(application_url)
        with (
            Load(server.url) as load,
            WorkerProcess(server, application, tmp_path / "one") as one,
            WorkerProcess(server, application, tmp_path / "two", TEST_ASYNC="1") as two,
        ):
            for number in range(KILLS):
                load.goes_on(application, f"before kill {number}")
                postgres.kill()
                postgres.start()
            load.goes_on(application, "after the last kill")
            assert server.ready()
            with closing(server.client()) as client:
                load.finish(client, application)
                assert dead(client) == {}
            assert load.verdict(application.effects()) == SOUND
            assert one.stop() == two.stop() == 0
