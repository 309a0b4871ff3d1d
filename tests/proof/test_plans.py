"""The short forms: plans over killed servers and operators, and plans that drain beside live traffic."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.proof import plan_drains, plan_kills
from tests.proof.places import kinds
from tests.proof.runs import run

MEMBERS = 300


@pytest.mark.timeout(240)
def test_each_member_of_a_plan_goes_once_whoever_is_killed(tmp_path: Path) -> None:
    """Servers and operators are killed while plans overlap; a store that forgets is found out."""
    [proof] = plan_kills.PROOFS
    result = run(proof, until=len(kinds()) * plan_kills.KILLS, folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls


@pytest.mark.alone
@pytest.mark.timeout(240)
def test_a_plan_keeps_its_envelope_as_its_dependency_counts(tmp_path: Path) -> None:
    """Every member is done once, and so is every live job; a wider envelope overruns the dependency."""
    [proof] = plan_drains.PROOFS
    short = replace(proof, round=partial(plan_drains.drains, members=MEMBERS, timed=False))
    result = run(short, until=len(kinds()), folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
