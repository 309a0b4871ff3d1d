"""kill -9 of a node in the middle of its batches: what it answered is there, and nobody else is held up."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.database import wait_for

from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.postgres import PostgresEngine

NODE = Path(__file__).with_name("node.py")
KILLS = 6
TRIES = 100
SECONDS = 20.0
BATCH = 5


def killed_after(url: str, count: int, *words: str) -> list[str]:
    """The ids that a node had answered when it was killed, after so many batches."""
    command = [sys.executable, str(NODE), url, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            lines = [process.stdout.readline() for _ in range(count)]
            process.send_signal(signal.SIGKILL)
            lines += [line for line in process.stdout if line.endswith("\n")]
        finally:
            process.kill()
    return [message_id for line in lines for message_id in line.split()]


@pytest.fixture
def other(postgres_url: str) -> Iterator[PostgresEngine]:
    """A node that lives."""
    engine = PostgresEngine(postgres_url)
    yield engine
    engine.close()


def stored(url: str) -> dict[str, int]:
    """Every message by id, with the instant of its batch, when no session of a dead node is left."""
    with psycopg.connect(url, autocommit=True) as admin:
        alone = (
            "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid() "
            "AND application_name = 'redrive writer' AND state <> 'idle'"
        )
        wait_for(
            lambda: admin.execute(alone.encode()).fetchall() == [(True,)], SECONDS, "the sessions to end"
        )
        rows = admin.execute("SELECT message_id::text, xmin::text::bigint FROM redrive.messages").fetchall()
    return dict(rows)


def test_a_killed_node_loses_nothing_and_holds_nobody_up(postgres_url: str, other: PostgresEngine) -> None:
    """Each batch is there whole or not at all; another node at once gets everything that was not leased."""
    answered: list[str] = []
    for kill in range(KILLS):
        answered += killed_after(postgres_url, 1 + 4 * kill)
    kept = stored(postgres_url)
    assert set(answered) <= kept.keys()
    assert len(kept) % BATCH == 0, "no batch was stored in part"
    mine: set[str] = set()

    def drained() -> bool:
        [answer] = other.run(lambda tx: apply(tx, [c.Lease("jobs", 1000, 60_000)])).results
        assert isinstance(answer, c.Leased)
        mine.update(message.message_id for message in answer.messages)
        return len(mine) == len(kept) - len(kept) // BATCH * 2

    wait_for(drained, SECONDS, "all that the dead node had not leased")
    assert other.check() == []


def test_answering_before_the_commit_loses(postgres_url: str, other: PostgresEngine) -> None:
    """The control: a node that answers before its COMMIT loses answered messages to the same kills."""
    for kill in range(TRIES):
        answered = killed_after(postgres_url, 1 + kill % 3, "early")
        if not set(answered) <= stored(postgres_url).keys():
            return
    raise AssertionError(f"{TRIES} kills found nothing: this control does not see a lost message")
