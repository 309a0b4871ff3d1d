"""News between nodes, and that it survives a broken connection."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence

import psycopg
import pytest
from tests.database import wait_for

from redrive.storage.postgres import PostgresEngine
from redrive.storage.postgres.wakeups import Wakeups

SECONDS = 10.0


class Ear:
    """One node's wake-ups, with what it heard."""

    def __init__(self, wakeups: Wakeups) -> None:
        self.heard: queue.Queue[str] = queue.Queue()
        self.wakeups = wakeups
        wakeups.start(self._hear)

    def _hear(self, names: Sequence[str]) -> None:
        for name in names:
            self.heard.put(name)


@pytest.fixture
def ears(postgres_url: str) -> Iterator[tuple[Ear, Ear]]:
    """Two nodes that listen."""
    engine = PostgresEngine(postgres_url)
    pair = Ear(engine.wakeups()), Ear(engine.wakeups())
    for ear in pair:
        assert ear.wakeups.wait_listening(SECONDS)
    yield pair
    for ear in pair:
        ear.wakeups.stop()
    engine.close()


def test_other_nodes_hear(ears: tuple[Ear, Ear]) -> None:
    """What one node announces, the other hears, in as many notifications as it takes; not itself."""
    names = [f"queue-{number}" for number in range(200)]
    ears[0].wakeups.announce(names)
    assert sorted(ears[1].heard.get(timeout=SECONDS) for _ in names) == sorted(names)
    ears[1].wakeups.announce(["back"])
    assert ears[0].heard.get(timeout=SECONDS) == "back", "its own news did not come back to it"


def test_a_broken_connection_is_made_again(ears: tuple[Ear, Ear], postgres_url: str) -> None:
    """After the server ended every session, news goes through again by itself."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    def heard() -> bool:
        ears[0].wakeups.announce(["again"])
        return not ears[1].heard.empty()

    assert wait_for(heard, SECONDS, "news after the break")
