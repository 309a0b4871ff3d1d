"""A small night, its provider on loopback, and its game in a real database."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redrive.arena.game import Game, Night, fill, open_game
from redrive.arena.provider import Books, FaultPlan, Faults, ProviderServer
from redrive.arena.reconcile import Provider
from redrive.arena.records import GAME_ID, settlement_key

DAY = "2026-10-23"
NOW_MS = 1_792_900_000_000


@pytest.fixture(scope="session")
def night() -> Night:
    """3,000 payments over 12 shards, so that every story is told."""
    return Night.drawn(7, payments=3_000, matches_count=120, day=DAY, now_ms=NOW_MS)


@pytest.fixture
def server(night: Night) -> Iterator[ProviderServer]:
    """The provider of the night, without faults until a test puts some in."""
    with serving(Books(night.entries)) as started:
        yield started


@contextmanager
def serving(books: Books) -> Iterator[ProviderServer]:
    """A provider on a free port; stopped and joined at the end."""
    server = ProviderServer(books, Faults(7, FaultPlan(timeout_seconds=20)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(5)


@pytest.fixture
def provider(server: ProviderServer) -> Iterator[Provider]:
    """A client of the night's provider."""
    client = Provider(server.address, timeout_seconds=0.5)
    yield client
    client.close()


@pytest.fixture
def sqlite_game(night: Night, tmp_path: Path) -> Iterator[Game]:
    """The night in SQLite."""
    with filled(f"sqlite:///{tmp_path / 'game.db'}", night) as game:
        yield game


@pytest.fixture(params=["sqlite", "postgres", "mysql"])
def game(request: pytest.FixtureRequest, night: Night, tmp_path: Path) -> Iterator[Game]:
    """The night in each database."""
    kind = request.param
    url = f"sqlite:///{tmp_path / 'game.db'}" if kind == "sqlite" else request.getfixturevalue(f"{kind}_url")
    with filled(url, night) as found:
        yield found


@contextmanager
def filled(url: str, night: Night) -> Iterator[Game]:
    """A committed game database."""
    with closing(open_game(url)) as connection:
        game = Game(connection)
        game.install()
        fill(game, night)
        connection.commit()
        yield game


def settlement(shard: str, **changes: Any) -> Any:
    """A delivered settlement job of ``shard``; ``changes`` go into its payload, ``key`` replaces its key."""
    key = changes.pop("key", settlement_key(DAY, shard))
    payload = {"date": DAY, "shard": shard, "game_id": GAME_ID, **changes}
    return SimpleNamespace(key=key, payload=payload, delivery=1)


def found(corrections: list[Any], findings: list[Any]) -> list[tuple[str, str, str]]:
    """What a comparison found, in the form of the answer key, sorted."""
    moved = [("correction", each.payment_id, each.to_state) for each in corrections]
    return sorted(moved + [(each.kind, each.payment_id or each.provider_ref, "") for each in findings])


def expected(answers: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """An answer key, sorted."""
    return sorted((answer["find"], answer["subject"], answer["to_state"]) for answer in answers)
