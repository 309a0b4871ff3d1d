"""The short form: twenty-five kills on each store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proof.places import kinds
from tests.proof.runs import run
from tests.proof.server_kills import KILLS, PROOFS


@pytest.mark.timeout(300)
def test_a_server_killed_under_load_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Acknowledged and lost 0, unexpected 0, one effect a key; a store that forgets is found out."""
    [proof] = PROOFS
    result = run(proof, until=len(kinds()) * KILLS, folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
    assert result.counts["lost"] == result.counts["unexpected"] == result.counts["doubled"] == 0
