"""The short form of the soak: not quite a minute, in which descriptors and threads must not grow."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path

import pytest

from tests.proof.runs import run
from tests.proof.soak import PROOFS, SHORT, Samples, soak


@pytest.mark.timeout(240)
def test_j1_a_minute_of_work_leaves_no_descriptor_or_thread(tmp_path: Path) -> None:
    """Failing, delayed and long jobs; a client that never closes its connections is found out."""
    [proof] = PROOFS
    minute = dataclasses.replace(proof, round=partial(soak, length=SHORT))
    result = run(minute, until=1, folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls


def test_the_slope_is_seen_and_a_single_jump_is_not_one() -> None:
    """A mebibyte an hour is one; so is nothing behind a step of ten."""
    at = [10.0 * n for n in range(180)]
    growing = Samples(at=at, memory=[50 + seconds / 3_600 for seconds in at])
    jumped = Samples(at=at, memory=[50.0 + 10 * (seconds > 900) * (seconds < 910) for seconds in at])
    assert growing.slope() == pytest.approx(1.0)
    assert jumped.slope() == 0
