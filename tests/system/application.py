"""The application under test: its database with a table of effects, and its workers as processes."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from redrive.ledger import Ledger
from redrive.transports.contract_transport import ContractTransport
from tests.system.servers import ROOT, SECONDS, environment

QUEUE = "work"


class Application:
    """``effects`` has no unique key on purpose: a double would show. Fresh with each instance."""

    def __init__(self, url: str) -> None:
        self.url = url
        with closing(self.connect()) as connection:
            if url.startswith("sqlite"):
                connection.execute("pragma journal_mode = wal")
            connection.execute("create table effects (job_key text not null)")
            connection.execute("create table orders (job_key text not null)")
            connection.commit()
        ledger = Ledger(url)
        ledger.install()
        ledger.close()

    def connect(self) -> Any:
        """A connection of its driver; close it."""
        return connect(self.url)

    def effects(self) -> Counter[str]:
        """How often each job's effect is in the table."""
        return Counter(row[0] for row in self.rows("select job_key from effects"))

    def count(self) -> int:
        """How many effects there are."""
        [(count,)] = self.rows("select count(*) from effects")
        return int(count)

    def orders(self) -> set[str]:
        """The keys of what producers committed."""
        return {row[0] for row in self.rows("select job_key from orders")}

    def rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        """The rows of a query."""
        with closing(self.connect()) as connection:
            found: Sequence[tuple[Any, ...]] = connection.execute(query).fetchall()
            return found


def connect(url: str) -> Any:
    """A connection to ``url`` in manual commit, as an application would have it."""
    if url.startswith("sqlite"):
        return sqlite3.connect(urlsplit(url).path[1:], timeout=SECONDS)
    import psycopg

    return psycopg.connect(url)


def insert(connection: Any, table: str, job_key: str) -> None:
    """One row, by either driver."""
    mark = "?" if isinstance(connection, sqlite3.Connection) else "%s"
    connection.execute(f"insert into {table} values ({mark})", (job_key,))


def left(client: ContractTransport, queue: str = QUEUE) -> int:
    """How many messages the queue holds, alive."""
    stats = client.call("queue.stats", {"queue": queue})
    return int(stats["ready"] + stats["delayed"] + stats["leased"])


def dead(client: ContractTransport, queue: str = QUEUE) -> dict[str, dict[str, Any]]:
    """The dead letters by job key."""
    letters: dict[str, dict[str, Any]] = {}
    cursor = None
    while True:
        page = client.call("queue.dlq.list", {"queue": queue, "limit": 1000, "cursor": cursor})
        letters |= {item["job_key"]: item for item in page["items"]}
        if (cursor := page["next_cursor"]) is None:
            return letters


class Reached(Protocol):
    """What a worker is sent to: a server, or a proxy before it."""

    @property
    def url(self) -> str:
        """Its URL."""


class WorkerProcess:
    """One worker (``tests.system.worker``) of ``application`` on ``server``; SIGKILLed when left.

    ``options`` are keywords of :class:`redrive.Worker`, ``variables`` go to its environment, ``folder`` is
    where it finds and leaves signals.
    """

    command: tuple[str, ...] = ("tests.system.worker",)

    def __init__(
        self,
        server: Reached,
        application: Application,
        folder: Path,
        options: dict[str, Any] | None = None,
        **variables: str,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._process = self._launch(
            {
                "QUEUE_URL": server.url,
                "LEDGER_URL": application.url,
                "WORKER_OPTIONS": json.dumps(options or {}),
                "REDRIVE_SIGNAL_DIR": str(folder),
                **variables,
            }
        )

    def _launch(self, variables: dict[str, str]) -> Any:
        """The process, as ``subprocess.Popen`` shows it."""
        return subprocess.Popen(
            [sys.executable, "-m", *self.command],
            stdin=subprocess.PIPE,
            cwd=ROOT,
            env=environment(**variables),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """The process's id."""
        return int(self._process.pid)

    def alive(self) -> bool:
        """Whether it runs."""
        return bool(self._process.poll() is None)

    def wait(self, seconds: float = SECONDS) -> int:
        """Its exit code, within ``seconds``; negative for a signal."""
        return int(self._process.wait(seconds))

    def killed_itself(self) -> bool:
        """Wait for the SIGKILL that its faults, or its handler, send it."""
        return self.wait() == -signal.SIGKILL

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def stop(self, seconds: float = SECONDS) -> int:
        """SIGTERM; the exit code, within ``seconds``."""
        os.kill(self.pid, signal.SIGTERM)
        return self.wait(seconds)


class WorkerCommand(WorkerProcess):
    """The same through ``redrive worker run``."""

    command = ("redrive", "worker", "run", "tests.system.worker:worker")


def runs(folder: Path) -> list[dict[str, Any]]:
    """Every call of the handler by the workers that share ``folder``, in order: key, attempt, delivery."""
    path = folder / "runs"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
