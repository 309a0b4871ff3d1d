"""The short form: fifty kills at each of the seven points, half of them on each store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proof.runs import run
from tests.proof.worker_kills import EACH, POINTS, PROOFS


@pytest.mark.timeout(240)
def test_killed_workers_leave_one_effect_a_key(tmp_path: Path) -> None:
    """Nothing is lost, nothing is done twice; without receipts, or acknowledged first, it is."""
    [proof] = PROOFS
    result = run(proof, until=2 * EACH * len(POINTS), folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
    assert {result.counts[f"kills {point}"] for point in POINTS} == {2 * EACH}
