"""The short form: one round of sessions that end inside COMMIT, outside of it, and under another history."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.database import postgres_missing
from tests.proof.database_sessions import CUTS, PROOFS
from tests.proof.runs import run


@pytest.mark.skipif(postgres_missing() != "", reason=postgres_missing())
@pytest.mark.timeout(180)
def test_broken_sessions_lose_and_double_nothing(tmp_path: Path) -> None:
    """An unknown outcome is named as such; without idempotency keys a repetition stores twice."""
    [proof] = PROOFS
    result = run(proof, until=CUTS, folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
    assert result.counts["outcomes named unknown"] == result.rounds
