"""The short form: two failovers in a row under load."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.database import postgres_missing
from tests.proof.failover import FAILOVERS, PROOFS
from tests.proof.runs import run


@pytest.mark.skipif(postgres_missing() != "", reason=postgres_missing())
@pytest.mark.timeout(180)
def test_a_failover_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """The synchronous standby has it all; one that may be behind has not."""
    [proof] = PROOFS
    result = run(proof, until=FAILOVERS, folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
