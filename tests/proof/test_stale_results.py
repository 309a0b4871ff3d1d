"""The short form: every point once with each kind of rival, on each store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proof.places import kinds
from tests.proof.runs import run
from tests.proof.stale_results import PROOFS, WISHES


@pytest.mark.timeout(180)
def test_a_stale_result_never_overwrites(tmp_path: Path) -> None:
    """409 while the message exists, nothing to do after; without receipts or handles it would."""
    [proof] = PROOFS
    result = run(proof, until=2 * len(kinds()) * len(WISHES), folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
