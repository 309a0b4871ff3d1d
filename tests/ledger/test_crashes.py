"""A worker killed with SIGKILL around its commit: no effect without receipt, no second effect."""

from __future__ import annotations

import subprocess
import sys

import pytest

from redrive.ledger import Ledger
from tests.database import wait_for
from tests.ledger.stores import Delivery, Store

WORKER = """
import contextlib, os, sys
from redrive.ledger import Ledger
from tests.ledger.stores import Delivery, Store

name, url, moment, receipts = sys.argv[1:]
store = Store(name, url)

def stop_here():
    sys.stdout.write("here\\n")
    sys.stdout.flush()
    sys.stdin.read()  # until the test kills this process

def change(db):
    store.effect("job:1")(db)
    if moment == "in the change":
        stop_here()

def may_commit():
    if moment == "before commit":
        stop_here()
    return True

if receipts == "on":
    store.ledger().execute(Delivery("job:1"), change, may_commit=may_commit)
else:
    db = store.connect()
    change(db)
    may_commit()
    db.commit()
stop_here()
"""


def killed(store: Store, moment: str, receipts: str = "on") -> None:
    """Run a worker to ``moment`` and kill it there."""
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, store.name, store.url, moment, receipts],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert worker.stdout is not None
    assert worker.stdin is not None
    try:
        assert worker.stdout.readline() == b"here\n"
    finally:
        worker.kill()
        worker.wait(10)
        worker.stdout.close()
        worker.stdin.close()


@pytest.mark.parametrize("moment", ["in the change", "before commit"])
def test_killed_before_commit_leaves_neither_effect_nor_receipt(
    store: Store, ledger: Ledger, moment: str
) -> None:
    """The next delivery runs, and the loss is on record."""
    killed(store, moment)
    # a server notices the closed socket on its own time
    wait_for(lambda: store.effects("job:1") == 0 and ledger.job("job:1") is None, 10, "the rollback")
    assert ledger.execute(Delivery("job:1", 2, previous="lost"), store.effect("job:1"))
    assert store.effects("job:1") == 1
    assert [(a.delivery, a.outcome) for a in ledger.attempts("job:1")] == [(1, "lost"), (2, "done")]


def test_killed_after_commit_and_before_ack_the_duplicate_is_refused(store: Store, ledger: Ledger) -> None:
    """The next delivery finds the receipt; the first one's own record stands although the queue calls it
    lost."""
    killed(store, "after commit")
    assert not ledger.execute(Delivery("job:1", 2, previous="lost"), store.effect("job:1"))
    assert store.effects("job:1") == 1
    assert [(a.delivery, a.outcome) for a in ledger.attempts("job:1")] == [(1, "done"), (2, "duplicate")]


def test_control_with_receipts_off_the_same_crash_doubles_the_effect(store: Store) -> None:
    """Control: what the receipt is for."""
    for _ in range(2):
        killed(store, "after commit", receipts="off")
    assert store.effects("job:1") == 2
