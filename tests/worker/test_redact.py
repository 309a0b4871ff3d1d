"""What a queue redacts gets neither into a worker's log nor into an error that it reports or writes down."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.worker.memory_queue import MemoryQueue

from redrive.compose import open_service
from redrive.ledger import Ledger
from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from redrive.transports.local import open_local
from redrive.worker import Job, Reject, Worker

SECONDS = 15.0
CARD, TOKEN = "4111-2222-3333-4444", "bearer-of-secrets"
REDACT = ["card", "headers.authorization"]


@pytest.fixture
def queue() -> Iterator[ContractTransport]:
    """A transport into a service in memory."""
    transport = open_local(_started())
    yield transport
    transport.close()


def _started() -> Any:
    service = open_service("memory:")
    service.start()
    return service


def _refuses(job: Job, _db: Any) -> None:
    raise Reject(f"card {job.payload['card']} of {job.headers['Authorization']} is refused: {job!r}")


def _run(queue: ContractTransport, folder: Path, redact: list[str] | None) -> dict[str, str]:
    """A rejected job: what the log, the ledger and the server show of it afterwards."""
    ledger = Ledger(f"sqlite:///{folder / 'game.db'}")
    ledger.install()
    queue.call("queue.create", {"name": "pay", "redact": redact})
    queue.call(
        "queue.publish",
        {"queue": "pay", "job_key": "pay:7", "payload": {"card": CARD}, "headers": {"Authorization": TOKEN}},
    )
    worker = Worker(queue, queue="pay", ledger=ledger, wait_seconds=0.2, concurrency=1)
    worker.job(_refuses)
    assert worker.run_until_idle(SECONDS) == 1
    ledger.close()
    with closing(sqlite3.connect(folder / "game.db")) as game:
        written = "\n".join(line for line in game.iterdump() if "pay:7" in line)
    queue.call("queue.update", {"name": "pay", "redact": []})  # what the server shows is what it was sent
    (dead,) = queue.call("queue.dlq.list", {"queue": "pay"})["items"]
    return {"ledger": written, "server": json.dumps(dead["error"])}


@pytest.mark.parametrize("redact", [REDACT, None])
def test_errors_of_a_worker(
    queue: ContractTransport, tmp_path: Path, caplog: pytest.LogCaptureFixture, redact: list[str] | None
) -> None:
    """Masked in the log, the ledger and the server's record; all show it without ``redact`` (control)."""
    with caplog.at_level(logging.DEBUG):
        shown = _run(queue, tmp_path, redact)
    shown["log"] = "\n".join(record.getMessage() for record in caplog.records if record.name != "asyncio")
    for where, text in shown.items():
        assert "is refused" in text, where
        seen = [word in text for word in (CARD, TOKEN)]
        assert seen == [redact is None] * 2, where


def test_a_job_does_not_print_its_headers() -> None:
    """A job is easily logged: payload and headers are not in its representation."""
    job = Job("k", {"card": CARD}, "m", 1, 1, "pay", {"Authorization": TOKEN})
    assert "pay" in repr(job)
    assert not any(word in repr(job) for word in (CARD, TOKEN))


def test_a_transport_that_names_no_paths_masks_nothing() -> None:
    """Other transports know no such setting: their errors are as the handler made them."""
    queue = MemoryQueue()
    queue.publish("work", [Entry(payload={"card": CARD}, headers={"Authorization": TOKEN})])
    worker = Worker(queue, queue="work", wait_seconds=0.2, concurrency=1)
    worker.job(lambda job: _refuses(job, None))
    worker.run_until_idle(SECONDS)
    ((_, error),) = queue.queue("work").dead.values()
    assert error is not None
    assert CARD in error["message"]
