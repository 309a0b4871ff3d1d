"""The short form: two rounds of backups under load."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proof.backups import BACKUPS, PROOFS
from tests.proof.runs import run


@pytest.mark.timeout(180)
def test_a_backup_under_load_is_a_state_of_the_store(tmp_path: Path) -> None:
    """Nothing lost, nothing acked comes back, each copy is served; a mere copy of the file is found out."""
    [proof] = PROOFS
    result = run(proof, until=2 * BACKUPS, folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
    assert result.counts["messages that must be in a copy"] > 0
