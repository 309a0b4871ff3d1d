"""The short forms of the hostile proofs."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path

import pytest

from tests.proof import hostile_bytes, hostile_crowds, hostile_requests
from tests.proof.runs import Proof, run

REQUESTS = 5_000
CALM = 20.0  # a test machine is busy with other things: only a server that stands still is found here


def short(proof: Proof, until: int, folder: Path) -> dict[str, int]:
    """Its counts; nothing was violated but by the controls."""
    result = run(proof, until=until, folder=folder)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
    return result.counts


@pytest.mark.timeout(300)
def test_no_request_is_answered_with_a_5xx_or_out_of_shape(tmp_path: Path) -> None:
    """Drawn from the OpenAPI document by Schemathesis; answers without metadata are found out."""
    [proof] = hostile_requests.PROOFS
    counts = short(proof, REQUESTS, tmp_path)
    assert {"answered 200", "answered 400", "answered 404", "answered 409", "answered 422"} <= counts.keys()


@pytest.mark.timeout(120)
def test_bytes_that_no_client_sends_are_refused_or_cut(tmp_path: Path) -> None:
    """Every case once whole and once in pieces; a server without deadlines is found out."""
    [proof] = hostile_bytes.PROOFS
    counts = short(proof, 1, tmp_path)
    assert counts["exchanges"] == 2 * len(hostile_bytes.ALL)
    assert {"answered 400", "answered 408", "answered 413", "answered 431", "cut"} <= counts.keys()


@pytest.mark.alone
@pytest.mark.timeout(180)
def test_crowds_are_cut_and_others_are_served(tmp_path: Path) -> None:
    """A thousand slow heads, a thousand slow bodies, ten thousand who say nothing."""
    [proof] = hostile_crowds.PROOFS
    calm = partial(hostile_crowds.gather, gatherings=hostile_crowds.SHORT, ratio=CALM)
    counts = short(dataclasses.replace(proof, round=calm), 1, tmp_path)
    assert counts["ended 408"] >= counts["connections"] // 12
