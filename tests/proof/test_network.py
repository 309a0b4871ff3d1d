"""The short form: every weather, resets and a half-open connection, on each store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proof.network import PROOFS
from tests.proof.places import kinds
from tests.proof.runs import load, run


@pytest.mark.timeout(180)
def test_a_failing_network_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """What was acknowledged is one message with one effect; without idempotency keys it is more."""
    [proof] = PROOFS
    for _ in kinds():
        result = run(proof, until=load(proof, tmp_path).reached + 1, folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
    assert all(result.counts[name] for name in ("connections lost", "answers cut", "resets", "half-open"))
