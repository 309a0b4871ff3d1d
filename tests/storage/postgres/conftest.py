"""What the tests of several nodes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from redrive.storage.postgres import PostgresEngine


@pytest.fixture
def nodes(postgres_url: str) -> Iterator[tuple[PostgresEngine, PostgresEngine]]:
    """Two engines over one database."""
    pair = PostgresEngine(postgres_url), PostgresEngine(postgres_url)
    yield pair
    for engine in pair:
        engine.close()
