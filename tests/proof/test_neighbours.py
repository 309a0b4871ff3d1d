"""The short form: each kind of misbehaviour once with each executor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proof.neighbours import EXECUTORS, KINDS, PROOFS
from tests.proof.runs import run


@pytest.mark.timeout(180)
def test_a_misbehaving_job_ends_alone(tmp_path: Path) -> None:
    """Dead after its budget, its neighbours done; a consumer that collects suspects loses them all."""
    [proof] = PROOFS
    result = run(proof, until=len(KINDS) * len(EXECUTORS), folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
