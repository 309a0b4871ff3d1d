"""The process that completes the last member is killed before, in, or after its last statements, for real."""

from __future__ import annotations

import random
import signal
import subprocess
import sys

import pytest

from redrive.ledger import Ledger
from tests.ledger.conftest import TABLES
from tests.ledger.stores import Store
from tests.ledger.test_batches import KEY, THEN, do, make
from tests.system.servers import ROOT, environment

DIES = """
import os, signal, sys
from redrive.ledger import Ledger
from redrive.ledger.drivers import dbapi
from redrive.ledger.steps import Control, Statement
from tests.ledger.stores import Delivery, Store

store, at = Store(sys.argv[1], sys.argv[2]), sys.argv[3]
for driver in (dbapi.Sqlite, dbapi.Psycopg, dbapi.PyMysql):
    def perform(self, step, perform=driver.perform):
        name = step.name if isinstance(step, Statement) else None
        if name == at.removeprefix("after "):
            if at.startswith("after "):
                perform(self, step)
            os.kill(os.getpid(), signal.SIGKILL)
        answer = perform(self, step)
        if at == "after the commit" and isinstance(step, tuple) and Control.COMMIT in step:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer
    driver.perform = perform
Ledger(store.url).execute(Delivery("shard:1", queue="settle"), store.effect("shard:1"))
"""
PLACES = ("batch_countdown", "batch_complete", "follow_up", "after follow_up", "after the commit")


def killed(store: Store, ledger: Ledger, at: str) -> None:
    """One batch of two, whose second member's process dies there, and is done again by another."""
    make(store, ledger, 2)
    do(store, ledger, "shard:0")
    command = [sys.executable, "-c", DIES, store.name, store.url, at]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    committed = at == "after the commit"
    assert (ledger.job(THEN.key) is not None, store.effects("shard:1")) == (committed, int(committed))
    assert bool(do(store, ledger, "shard:1", 2)) is not committed
    assert (ledger.job(THEN.key) is not None, store.effects("shard:1")) == (True, 1)
    assert ledger.batch_status(KEY).batch.state == "complete"


@pytest.mark.parametrize("at", PLACES)
def test_the_follow_up_exists_once_wherever_the_last_completion_dies(
    store: Store, ledger: Ledger, at: str
) -> None:
    """With one effect, on each database."""
    killed(store, ledger, at)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_hundred_kills(store: Store, ledger: Ledger) -> None:
    """As above, again and again."""
    chance = random.Random(200)
    for _ in range(200):
        killed(store, ledger, chance.choice(PLACES))
        store.run(*(f"DELETE FROM {table}" for table in TABLES))
