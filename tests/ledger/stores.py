"""The databases of these tests, each with the same small table of effects, and deliveries for them."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from redrive.ledger import Ledger


@dataclass
class Delivery:
    """A delivery as a worker hands it over."""

    job_key: str
    delivery: int = 1
    message_id: str = "m-1"
    attempt: int = 1
    queue: str = "settlement"
    headers: Mapping[str, str] = field(default_factory=dict)
    previous: str | None = None
    generation: int = 0
    consumer_id: str = "worker-a"


@dataclass
class Store:
    """One database: ``url`` as Ledger takes it, ``name`` its dialect."""

    name: str
    url: str
    opened: list[Any] = field(default_factory=list)

    def connect(self, *, autocommit: bool = False) -> Any:
        """A DB-API connection as an application would open it; closed with the test at the latest."""
        connection = self._connect(autocommit)
        self.opened.append(connection)
        return connection

    def close(self) -> None:
        """Close every connection that :meth:`connect` opened."""
        for connection in self.opened:
            with contextlib.suppress(Exception):  # PyMySQL refuses a second close
                connection.close()

    def _connect(self, autocommit: bool) -> Any:
        if self.name == "sqlite":
            return sqlite3.connect(
                self.url.removeprefix("sqlite:///"),
                timeout=5,
                isolation_level=None if autocommit else "",
                check_same_thread=False,
            )
        if self.name == "postgres":
            import psycopg

            return psycopg.connect(self.url, autocommit=autocommit)
        import pymysql

        parts = urlsplit(self.url)
        return pymysql.connect(
            host=parts.hostname or "",
            port=parts.port or 0,
            user=parts.username or "",
            database=parts.path[1:],
            autocommit=autocommit,
        )

    @property
    def alchemy_url(self) -> str:
        """The URL as SQLAlchemy's blocking engine takes it."""
        driver = {"sqlite": "sqlite", "postgres": "postgresql+psycopg", "mysql": "mysql+pymysql"}[self.name]
        return driver + self.url[self.url.index(":") :]

    def ledger(self) -> Ledger:
        """A ledger with this database as its own."""
        return Ledger(self.url)

    def effects(self, job_key: str) -> int:
        """How many effects of the job were committed."""
        connection = self._connect(autocommit=True)
        try:
            cursor = connection.cursor()
            mark = "?" if self.name == "sqlite" else "%s"
            cursor.execute(f"SELECT count(*) FROM effects WHERE job_key = {mark}", (job_key,))
            count: int = cursor.fetchone()[0]
            cursor.close()
            return count
        finally:
            connection.close()

    def effect(self, job_key: str, result: Any = None) -> Any:
        """A change for DB-API connections that has one effect of ``job_key`` and returns ``result``."""
        mark = "?" if self.name == "sqlite" else "%s"

        def change(db: Any) -> Any:
            cursor = db.cursor()
            cursor.execute(f"INSERT INTO effects (job_key) VALUES ({mark})", (job_key,))
            cursor.close()
            return result

        return change

    def prepare(self) -> None:
        """Install the ledger and the table of effects."""
        ledger = self.ledger()
        ledger.install()
        ledger.close()
        self.run("CREATE TABLE effects (job_key VARCHAR(200) NOT NULL)")

    def run(self, *statements: str) -> None:
        """Run statements for the test's own purposes."""
        connection = self._connect(autocommit=True)
        try:
            cursor = connection.cursor()
            for sql in statements:
                cursor.execute(sql)
            cursor.close()
        finally:
            connection.close()
