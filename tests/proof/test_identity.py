"""The short form: two and a half thousand pairs of wrong keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proof.identity import PROOFS
from tests.proof.runs import run


@pytest.mark.alone
def test_a_nearly_right_key_is_refused_as_fast_as_a_wrong_one(tmp_path: Path) -> None:
    """Interleaved, by the share of pairs and the medians; a comparison that stops early is found out."""
    [proof] = PROOFS
    result = run(proof, until=1, folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
