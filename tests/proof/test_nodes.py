"""The short form: two nodes, and three."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.database import postgres_missing
from tests.proof.nodes import PROOFS, nodes
from tests.proof.runs import run

OPERATIONS = 20  # of each node's meddler


@pytest.mark.alone
@pytest.mark.skipif(postgres_missing() != "", reason=postgres_missing())
@pytest.mark.timeout(240)
def test_nodes_cross_each_other_and_nobody_hears_of_it(tmp_path: Path) -> None:
    """With a store of its own for each node, what one of them has acknowledged is never done."""
    [proof] = PROOFS
    short = replace(proof, round=partial(nodes, operations=OPERATIONS))
    result = run(short, until=5 * OPERATIONS, folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
    assert result.counts["nodes"] >= 5
