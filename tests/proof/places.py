"""Where a round takes place: a queue's store and an application's database, fresh, of one kind."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.database import PostgresServer, postgres_missing
from tests.proof.nursery import ForkedServer, Nursery
from tests.system.application import Application


@dataclass(frozen=True)
class Place:
    """``kind`` is ``sqlite`` or ``postgres``; ``folder`` is empty but for their files, and goes with them."""

    kind: str
    storage: str
    application: Application
    folder: Path
    database: PostgresServer | None = None


def kinds() -> list[str]:
    """What there is here."""
    return ["sqlite"] if postgres_missing() else ["sqlite", "postgres"]


def kind_of(seed: int) -> str:
    """The rounds take turns."""
    return kinds()[seed % len(kinds())]


@contextmanager
def place(kind: str) -> Iterator[Place]:
    """A fresh place; PostgreSQL's server is its own, too."""
    with tempfile.TemporaryDirectory(prefix="redrive-proof-") as name:
        folder = Path(name)
        if kind == "sqlite":
            application = Application(f"sqlite:///{folder / 'application.db'}")
            yield Place(kind, f"sqlite:///{folder / 'queue.db'}", application, folder)
            return
        with (
            PostgresServer() as postgres,
            postgres.fresh_database() as queue_url,
            postgres.fresh_database() as application_url,
        ):
            yield Place(kind, queue_url, Application(application_url), folder, postgres)


class Served(NamedTuple):
    """A place with a server over its store, and the nursery that it is from."""

    nursery: Nursery
    where: Place
    server: ForkedServer


@contextmanager
def served(kind: str) -> Iterator[Served]:
    """What most rounds begin with."""
    with Nursery() as nursery, place(kind) as where, ForkedServer(nursery, where.storage) as server:
        yield Served(nursery, where, server)
