"""The short form of I/O errors: every operation, every kind of error, at every one of its calls."""

from __future__ import annotations

from functools import cache

import pytest

from tests.proof.io_errors import FAULTS, PLACES, PROOFS, io_errors
from tests.proof.runs import Found

[PROOF] = PROOFS


@cache
def played(place: str) -> Found:
    """Every kind of error at every call, in this place."""
    return io_errors(0, [place])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", PLACES)
def test_a_failing_call_loses_nothing_and_is_named(place: str) -> None:
    """No success after a failed sync; a named error; the store works again; a restart finds all (A5)."""
    found = played(place)
    assert found.violations == []
    assert found.counts["cases"] > 5
    assert found.counts.get("works again", 0) or place in ("close", "migration", "open")


@pytest.mark.timeout(300)
def test_every_kind_of_error_is_met() -> None:
    """No kind of error is claimed that never came up; commits end in every way that they can."""
    every = Found()
    for place in PLACES:
        every.add(played(place))
    assert {name.split(":")[0] for name in every.counts} >= set(FAULTS)
    assert every.counts["EIO at a sync: unknown"] > 0
    assert every.counts["EIO at a sync: nothing done"] > 0
    assert every.counts["ENOSPC at a write: disk full, nothing done"] > 100


@pytest.mark.timeout(300)
@pytest.mark.parametrize("safety", PROOF.controls)
def test_without_the_safety_the_proof_finds_it(safety: str) -> None:
    """The controls: a failed commit that is left in the log comes back; an untold sync is no success."""
    found = PROOF.controls[safety](0)
    assert found.violations
