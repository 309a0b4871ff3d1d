"""The claims of an exercise: they hold for what should have happened, and one fails for whatever did not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from redrive.exercise.claims import judge, left_behind
from redrive.exercise.evidence import Evidence
from redrive.exercise.options import Names, Options

NAMES = Names("0123456789")
OPTIONS = Options(surge=3, objective_seconds=5)


def _attempts(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"message_id": message_id, "delivery": 1, "outcome": outcome} for message_id, outcome in pairs]


def _job(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"state": "completed", "attempts": _attempts(*pairs)}


def good() -> Evidence:
    """An exercise in which everything went as it should."""
    keys = [NAMES.key(name) for name in ("valid", "twice", "invalid")] + NAMES.surge_keys(3)
    return Evidence(
        published={"valid": ["m1"], "twice": ["m2", "m3"], "invalid": ["m4"]},
        killed=True,
        held=4,
        effects_at_stop=1,
        isolated=[
            {"message_id": "m4", "job_key": NAMES.key("invalid"), "reason": "rejected", "error": "no amount"}
        ],
        isolated_state="isolated",
        plan={"state": "completed"},
        plan_items=[{"message_id": "m4", "outcome": "completed"}],
        redriven_total=1,
        peak={"ready": 3, "oldest_ready_age_seconds": 5.2},
        recovered_seconds=2.0,
        drained_seconds=3.0,
        effects=dict.fromkeys(keys, 1),
        jobs={
            "valid": _job(("m1", "done"), ("m1", "duplicate")),
            "twice": _job(("m2", "done"), ("m3", "duplicate")),
            "invalid": _job(("m4", "reject"), ("m4", "done")),
        },
    )


def _effects(job: str, count: int) -> Callable[[Evidence], None]:
    def change(evidence: Evidence) -> None:
        evidence.effects[NAMES.key(job)] = count

    return change


def _of(job: str, **fields: Any) -> Callable[[Evidence], None]:
    return lambda evidence: evidence.jobs[job].update(fields)


def _set(**fields: Any) -> Callable[[Evidence], None]:
    def change(evidence: Evidence) -> None:
        for name, value in fields.items():
            setattr(evidence, name, value)

    return change


def test_all_hold() -> None:
    """For what should have happened."""
    assert [claim.name for claim in judge(good(), OPTIONS, NAMES) if not claim.holds] == []
    assert left_behind([]).holds


@pytest.mark.parametrize(
    ("failing", "change"),
    [
        ("consumers stopped after the first delivery", _set(killed=False)),
        ("consumers stopped after the first delivery", _set(effects_at_stop=2)),
        ("consumers stopped after the first delivery", _set(held=0)),
        ("the valid job", _effects("valid", 2)),
        ("the valid job", _effects("valid", 0)),
        ("the valid job", _of("valid", attempts=_attempts(("m1", "done"), ("m1", "done")))),
        ("the job sent twice", _effects("twice", 2)),
        ("the job sent twice", _of("twice", attempts=_attempts(("m2", "done"), ("m3", "done")))),
        ("the job sent twice", _of("twice", attempts=_attempts(("m2", "done"), ("m2", "duplicate")))),
        ("the job that could not be valid", _set(isolated=[])),
        ("the job that could not be valid", _set(isolated=good().isolated * 2)),
        ("the job that could not be valid", _set(isolated_state="accepted")),
        ("the job that could not be valid", _set(effects_when_isolated=1)),
        ("corrected and redriven, only that item", _set(plan={"state": "paused"})),
        ("corrected and redriven, only that item", _set(plan_items=good().plan_items * 2)),
        ("corrected and redriven, only that item", _set(redriven_total=2)),
        (
            "… and completed under its original message id",
            _of("invalid", attempts=_attempts(("m4", "reject"), ("m9", "done"))),
        ),
        ("… and completed under its original message id", _effects("invalid", 2)),
        ("the ledger", _of("twice", state="accepted")),
        ("surge: consumers stopped, the backlog grows", _set(peak={"ready": 2})),
        (
            "surge: consumers stopped, the backlog grows",
            _set(peak={"ready": 3, "oldest_ready_age_seconds": 5.0}),
        ),
        ("surge: the oldest ready age is back", _set(recovered_seconds=None)),
        ("surge: the oldest ready age is back", _set(age_after=5.1)),
        ("surge: every job once", _effects("surge-00002", 2)),
        ("surge: every job once", _effects("surge-00002", 0)),
        ("surge: every job once", _set(left_in_queue=1)),
    ],
)
def test_what_went_wrong_fails_its_claim(failing: str, change: Callable[[Evidence], None]) -> None:
    """Its own claim, by name."""
    evidence = good()
    change(evidence)
    assert failing in [claim.name for claim in judge(evidence, OPTIONS, NAMES) if not claim.holds]


def test_an_exercise_in_which_nothing_happened_can_be_judged() -> None:
    """Every wait was in vain: the claims fail, and nothing else does."""
    none = {"state": "unknown", "attempts": []}
    evidence = replace(
        Evidence(), published=good().published, jobs={"valid": none, "twice": none, "invalid": none}
    )
    assert not any(claim.holds for claim in judge(evidence, OPTIONS, NAMES))
    assert not left_behind(["queue q: it is still there"]).holds


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"surge": 0}, "surge must be 1 to 10000, got 0"),
        ({"objective_seconds": 0.1}, "objective_seconds must be 0.5 to 3600, got 0.1"),
        ({"wait_seconds": 4000}, "wait_seconds must be 1 to 3600, got 4000"),
        ({"consumers": 17}, "consumers must be 1 to 16, got 17"),
    ],
)
def test_options_out_of_bounds(fields: dict[str, Any], said: str) -> None:
    """The field, its bounds and the value."""
    with pytest.raises(ValueError, match=said):
        Options(**fields)
