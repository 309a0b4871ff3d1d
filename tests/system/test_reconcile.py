"""Reconciliation over a real queue and a real ledger: planted faults are found, nothing else is reported.

The long form has 100,000 jobs: ``pytest -m slow tests/system/test_reconcile.py``.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from redrive.compose import open_service
from redrive.domain.reconcile import Cause
from redrive.ledger import Job, Ledger, Reconciliation
from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from redrive.transports.local import open_local
from redrive.worker.relay import Relay
from tests.ledger.stores import Delivery
from tests.system.servers import ROOT, environment

QUEUE = "settlement"
EACH = 40
"""Faults of each of the five kinds."""
SEED = 20261023


class Night:
    """A queue and an application's database, both of one kind, with jobs in every state that is in order."""

    def __init__(self, queue_url: str, ledger_url: str) -> None:
        self._queue_url, self._ledger_url = queue_url, ledger_url
        self.ledger = Ledger(ledger_url)
        self.ledger.install()
        self.planted: dict[str, set[str]] = {}
        self._open()
        self.queue.call("queue.create", {"name": QUEUE, "visibility_timeout_default": 43_200})

    def _open(self) -> None:
        self._service = open_service(self._queue_url)
        self._service.start()
        self.queue: ContractTransport = open_local(self._service)

    def close(self) -> None:
        """Close both."""
        self.queue.close()
        self.ledger.close()

    def write(self, url: str, *statements: str) -> None:
        """Run statements on a database that nobody else writes to now."""
        if url.startswith("sqlite"):
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
                for sql in statements:
                    connection.execute(sql)
            return
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET search_path TO redrive, public")
            for sql in statements:
                connection.execute(sql)

    def plan(self, keys: Iterable[str]) -> None:
        """Jobs in the outbox."""
        if self._ledger_url.startswith("sqlite"):
            connection: Any = sqlite3.connect(self._ledger_url.removeprefix("sqlite:///"))
        else:
            import psycopg

            connection = psycopg.connect(self._ledger_url)
        with closing(connection):
            self.ledger.publish(connection, QUEUE, (Job(key, {"key": key}) for key in keys))
            connection.commit()

    def publish(self, keys: Iterable[str]) -> None:
        """Jobs in the queue, accepted by the ledger."""
        self.plan(keys)
        relay = Relay(self.ledger, self.queue)
        while relay.once():
            pass

    def lease(self) -> dict[str, tuple[str, str]]:
        """Everything that is ready, leased: (message id, receipt handle) by job key."""
        leased: dict[str, tuple[str, str]] = {}
        while True:
            answer = self.queue.consume(
                QUEUE, max_messages=1000, visibility_timeout=43_200, wait_seconds=0, consumer_id="night"
            )
            if not answer.messages:
                return leased
            leased |= {one.job_key: (one.message_id, one.receipt_handle) for one in answer.messages}

    def expire(self, prefix: str) -> None:
        """The retention of these messages is over, and the duty has its turn."""
        self.queue.close()
        self.write(self._queue_url, f"UPDATE messages SET expires_ms = 1 WHERE job_key LIKE '{prefix}%'")
        self._open()
        self._service._duties.age()

    def populate(self, count: int) -> None:
        """Jobs without a fault: done and gone, dead and isolated, leased, ready, planned, cancelled."""
        share = count // 10
        self.publish([f"done-{n}" for n in range(6 * share)])
        self.queue.ack(QUEUE, list(self.lease().values()))
        self.publish([f"dead-{n}" for n in range(share // 2)])
        for message_id, handle in self.lease().values():
            self.queue.nack(QUEUE, message_id, handle, permanent=True)
        self.publish([f"leased-{n}" for n in range(share // 2)])
        self.lease()
        self.publish([f"ready-{n}" for n in range(2 * share)])
        self.plan([f"planned-{n}" for n in range(share)])
        now = 1_000_000
        self.write(
            self._ledger_url,
            f"UPDATE redrive_jobs SET state = 2, completed_at_ms = {now} WHERE job_key LIKE 'done-%'",
            "UPDATE redrive_jobs SET state = 3 WHERE job_key LIKE 'dead-%'",
        )

    def plant(self, count: int) -> None:
        """Forty faults of each of five kinds, each by what really causes it, among jobs without one."""
        kinds = ("early", "expired", "purged", "stranger", "queued")
        names = {kind: [f"{kind}-{n}" for n in range(EACH)] for kind in kinds}
        self.publish(names["purged"])
        self.queue.call("queue.purge", {"queue": QUEUE, "confirm": self._token()})
        self.publish(names["expired"])
        self.expire("expired-")  # now dead letters
        self.expire("expired-")  # and now gone
        self.publish(names["early"])
        self.queue.ack(QUEUE, list(self.lease().values()))
        self.publish(names["queued"][: EACH // 2])
        for message_id, handle in self.lease().values():
            self.queue.nack(QUEUE, message_id, handle, permanent=True)
        self.populate(count)
        self.publish(names["queued"][EACH // 2 :])
        for key in names["queued"]:
            self.ledger.execute(Delivery(key), lambda db: None)
        self.queue.publish(QUEUE, [Entry(payload=1, job_key=key) for key in names["stranger"]])
        causes = (Cause.EARLY_ACK, Cause.EXPIRED, Cause.PURGED, Cause.UNKNOWN_PRODUCER, Cause.STILL_QUEUED)
        self.planted = {cause.value: set(keys) for cause, keys in zip(causes, names.values(), strict=True)}

    def _token(self) -> str:
        from redrive.domain.errors import ConfirmationRequired

        with pytest.raises(ConfirmationRequired) as asked:
            self.queue.call("queue.purge", {"queue": QUEUE})
        return str((asked.value.details or {})["confirm"])


@pytest.fixture
def night(urls: tuple[str, str]) -> Iterator[Night]:
    """A night on each kind of database."""
    with closing(Night(*urls)) as opened:
        yield opened


def found(result: Reconciliation) -> dict[str, set[str]]:
    """Job keys by cause; each was named once."""
    with result:
        named: dict[str, set[str]] = {}
        for finding in result.findings():
            keys = named.setdefault(finding.cause.value, set())
            assert finding.job_key not in keys
            keys.add(finding.job_key)
        return named


class Untold:
    """The same queue without what it tells of single messages."""

    def __init__(self, queue: ContractTransport) -> None:
        self.held = queue.held


def judged(night: Night, jobs: int) -> None:
    """Plant faults, and let them be found: all of them, and nothing else."""
    night.plant(jobs - 5 * EACH)
    tracemalloc.start()
    result = night.ledger.reconcile(QUEUE, night.queue)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not result.explained
    assert result.summary.unexplained == 5 * EACH
    assert found(result) == night.planted
    assert peak < 24 * 2**20, f"{peak} bytes of Python's memory"
    # the control: without the queue's word on single messages the same judgement fails
    without = found(night.ledger.reconcile(QUEUE, Untold(night.queue)))
    assert without != night.planted
    assert set.union(*without.values()) == set.union(*night.planted.values())


def test_c5_every_planted_fault_is_found_and_none_that_is_not_there(night: Night) -> None:
    """Five kinds of forty among 3,000 jobs."""
    judged(night, 3_000)


def test_live_traffic_is_not_reported(night: Night) -> None:
    """Jobs are planned, published, done, acknowledged and dead while it looks; one fault is there."""
    night.publish(["lost"])
    night.queue.ack(QUEUE, list(night.lease().values()))
    ends = threading.Event()

    def traffic() -> None:
        for turn in itertools.count():
            keys = [f"{turn}-{n}" for n in range(8)]
            night.publish(keys)
            leased = night.lease()
            for key in keys[:4]:
                night.ledger.execute(Delivery(key, message_id=leased[key][0]), lambda db: None)
            night.queue.ack(QUEUE, [leased[key] for key in keys[:4]])
            for key in keys[4:6]:
                night.ledger.failed(Delivery(key, message_id=leased[key][0]), "reject", None, isolated=True)
                night.queue.nack(QUEUE, *leased[key], permanent=True)
            if ends.is_set():
                return

    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(traffic)
        try:
            for _ in range(10):
                assert found(night.ledger.reconcile(QUEUE, night.queue)) == {"early_ack": {"lost"}}
        finally:
            ends.set()
        working.result(60)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_every_planted_fault_is_found_among_100_000(night: Night) -> None:
    """The long form."""
    judged(night, 100_000)


@pytest.mark.parametrize("jobs", [20_011, pytest.param(1_000_003, marks=pytest.mark.slow)])
@pytest.mark.timeout(600)
def test_memory_does_not_grow_with_the_jobs(tmp_path: Path, jobs: int) -> None:
    """A million jobs, listed in an order of their own: the growth is the spool's cache and some pages."""
    words = [sys.executable, "-m", "tests.system.many_jobs", str(tmp_path / "app.db"), str(jobs)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, timeout=600, cwd=ROOT, env=environment()
    )
    told = json.loads(done.stdout)
    assert told["causes"] == {"early_ack": 10}
    assert told["held"] == {"ready": jobs - 10}
    assert told["grew"] < 64 * 2**20, f"{told['grew']} bytes"
