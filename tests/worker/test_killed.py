"""Real workers, real SIGKILL, the real server: one effect a job, wherever the worker dies."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from redrive import seams
from redrive.api.server import Server
from redrive.api.settings import ApiSettings
from redrive.domain.errors import NotFound
from redrive.ledger import Ledger
from redrive.service import Service, ServiceSettings
from redrive.storage.memory import MemoryEngine
from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from redrive.transports.rest import open_rest

ROOT = Path(__file__).parents[2]
SECRET = "killed-key-0123456789"
SECONDS = 20.0


@pytest.fixture(scope="module")
def queue_url() -> Iterator[str]:
    """A real server on a free port."""
    service = Service(MemoryEngine(), ServiceSettings(api_key=SECRET))
    service.start(first_key=True)
    ready = threading.Event()
    server = Server(service, "127.0.0.1", 0, ApiSettings())
    thread = threading.Thread(target=lambda: server.run(ready.set))
    thread.start()
    assert ready.wait(SECONDS)
    yield server.url
    server.stop()
    thread.join(SECONDS)
    service.close()


def recorded(ledger: Ledger, job_key: str) -> list[str]:
    """The outcomes of the job's attempts, in order of delivery."""
    return [one.outcome for one in ledger.attempts(job_key) if one.outcome != "unrecorded"]


@dataclass
class Night:
    """A queue, an application's database, and how to start workers on them."""

    transport: ContractTransport
    directory: Path
    environment: dict[str, str]

    def publish(self, *keys: str) -> list[str]:
        """One message for each key; the message ids."""
        self.transport.call("queue.update", {"name": "work", "retry_policy": {"base_seconds": 0}})
        stored = self.transport.publish("work", [Entry(payload=1, job_key=key) for key in keys])
        return [one.message_id for one in stored]  # type: ignore[union-attr]

    @contextmanager
    def worker(self, **variables: str) -> Iterator[subprocess.Popen[str]]:
        """A worker process, killed at the end if it still lives."""
        command = [sys.executable, "-m", "tests.worker.settling_script"]
        environment = {**self.environment, **variables}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as child:
            try:
                yield child
            finally:
                child.kill()

    def wait_gone(self, *message_ids: str) -> None:
        """Wait until the queue knows these messages no more."""
        ends_at = seams.monotonic() + SECONDS
        for message_id in message_ids:
            while self._known(message_id):
                assert seams.monotonic() < ends_at, f"{message_id} was never acknowledged"
                seams.wait(threading.Event(), 0.05)

    def wait_at(self, point: str) -> None:
        """Wait until a worker stands at this point."""
        ends_at = seams.monotonic() + SECONDS
        while not list(self.directory.glob(f"{point}-*")):
            assert seams.monotonic() < ends_at, f"no worker came to {point}"
            seams.wait(threading.Event(), 0.05)

    def wait_outcomes(self, job_key: str, *wanted: str) -> None:
        """Wait until these are the outcomes of the job's attempts.

        A failure is written down after its nack is answered, so the next delivery may be acknowledged
        before; and what waited too long for a slot was given back, which leaves a gap, not an attempt.
        """
        ends_at = seams.monotonic() + SECONDS
        with closing(Ledger(f"sqlite:///{self.directory / 'game.db'}")) as ledger:
            while (found := recorded(ledger, job_key)) != list(wanted):
                assert seams.monotonic() < ends_at, f"{job_key}: {found}, not {list(wanted)}"
                seams.wait(threading.Event(), 0.05)

    def _known(self, message_id: str) -> bool:
        try:
            self.transport.call("queue.message", {"message_id": message_id})
        except NotFound:
            return False
        return True

    def effects(self) -> list[str]:
        """The business table's rows."""
        with closing(sqlite3.connect(self.directory / "game.db")) as connection:
            return [row[0] for row in connection.execute("select job_key from effects order by 1")]


@pytest.fixture
def night(queue_url: str, tmp_path: Path) -> Iterator[Night]:
    """A fresh queue and a fresh database with a ledger."""
    path = tmp_path / "game.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table effects (job_key text)")
        connection.commit()
    ledger = Ledger(f"sqlite:///{path}")
    ledger.install()
    ledger.close()
    transport = open_rest(queue_url, SECRET)
    transport.call("queue.create", {"name": "work"})
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "QUEUE_URL": queue_url,
        "REDRIVE_API_KEY": SECRET,
        "LEDGER_URL": f"sqlite:///{path}",
        "REDRIVE_TESTING": "1",
        "REDRIVE_SIGNAL_DIR": str(tmp_path),
    }
    yield Night(transport, tmp_path, environment)
    transport.call("queue.delete", {"queue": "work"})
    transport.close()


POINTS = ["before_handler", "in_handler", "before_commit", "before_ack", "after_ack_sent"]


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_worker_leaves_one_effect(night: Night, point: str) -> None:
    """Killed anywhere between lease and acknowledgement, the next worker finishes each job once."""
    ids = night.publish("s:1", "s:2", "s:3")
    with night.worker(REDRIVE_KILL_AT=f"{point}:s:2") as first:
        assert first.wait(SECONDS) == -signal.SIGKILL
    with night.worker():
        night.wait_gone(*ids)
    assert night.effects() == ["s:1", "s:2", "s:3"]


@pytest.mark.parametrize("point", ["in_handler", "before_commit", "before_ack"])
def test_a_killed_child_takes_only_its_own_job(night: Night, point: str) -> None:
    """With processes the worker outlives a SIGKILL of a handler's process, and each job has one effect."""
    ids = night.publish("s:1", "s:2", "s:3")
    with night.worker(EXECUTOR="processes", REDRIVE_KILL_AT=f"{point}:s:2") as worker:
        night.wait_gone(*ids)
        assert worker.poll() is None
    assert night.effects() == ["s:1", "s:2", "s:3"]
    night.wait_outcomes("s:1", "done")
    night.wait_outcomes("s:3", "done")
    night.wait_outcomes("s:2", *(("done", "duplicate") if point == "before_ack" else ("died", "done")))


def test_without_receipts_the_same_kill_doubles_the_effect(night: Night) -> None:
    """The control: after its commit and before its ack, a worker without receipts does the work twice."""
    ids = night.publish("s:1")
    with night.worker(REDRIVE_KILL_AT="before_ack", REDRIVE_UNSAFE="no-receipts") as first:
        assert first.wait(SECONDS) == -signal.SIGKILL
    with night.worker(REDRIVE_UNSAFE="no-receipts") as second:
        night.wait_gone(*ids)
        second.terminate()
        assert second.wait(SECONDS) == 0
    assert night.effects() == ["s:1", "s:1"]


def test_with_ack_first_the_same_kill_loses_the_job(night: Night) -> None:
    """The control: acknowledged before its commit, a job dies with its worker."""
    ids = night.publish("s:1")
    with night.worker(REDRIVE_KILL_AT="before_commit", REDRIVE_UNSAFE="ack-first") as first:
        assert first.wait(SECONDS) == -signal.SIGKILL
    night.wait_gone(*ids)
    assert night.effects() == []


def test_a_paused_worker_does_not_commit_after_its_lease(night: Night) -> None:
    """A worker that stands still before its commit loses its lease to another one, and commits nothing."""
    (message_id,) = night.publish("s:1")
    with night.worker(REDRIVE_PAUSE_AT="before_commit") as stuck:
        night.wait_at("before_commit")
        os.kill(stuck.pid, signal.SIGSTOP)  # neither its handler nor its heartbeat runs
        with night.worker(REDRIVE_PAUSE_AT="before_handler") as other:
            night.wait_at("before_handler")  # the lease is the other one's now
            # SQLite's one writer is the stuck transaction: the other worker cannot finish before it
            (night.directory / "go").touch()
            os.kill(stuck.pid, signal.SIGCONT)
            night.wait_gone(message_id)
            other.terminate()
            assert other.wait(SECONDS) == 0
    assert night.effects() == ["s:1"]
    ledger = Ledger(f"sqlite:///{night.directory / 'game.db'}")
    outcomes = [one.outcome for one in ledger.attempts("s:1")]
    ledger.close()
    assert outcomes[-1] == "done"
    assert outcomes.count("done") == 1
