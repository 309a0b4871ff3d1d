"""The short form: every step once, on each store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proof.clock_steps import PROOFS, STEPS
from tests.proof.places import kinds
from tests.proof.runs import run


@pytest.mark.timeout(180)
def test_a_step_of_the_clock_moves_no_lease(tmp_path: Path) -> None:
    """Within 5 s of its monotonic time, and no wake-up lost; a tick that hides the step ends it."""
    [proof] = PROOFS
    result = run(proof, until=len(kinds()) * len(STEPS), folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
