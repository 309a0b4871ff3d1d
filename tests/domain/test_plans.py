"""The states of a plan, and the hash over its members."""

from __future__ import annotations

import hashlib
import itertools

import pytest

from redrive.domain.errors import Conflict
from redrive.domain.plans import (
    OPEN,
    OUTCOMES,
    PLAN_TRANSITIONS,
    PlanEvent,
    PlanState,
    members_sha256,
    next_state,
)  # fmt: skip

CASES = list(itertools.product(PlanState, PlanEvent))


@pytest.mark.parametrize(("state", "event"), CASES)
def test_what_is_not_in_the_table_is_refused_by_name(state: PlanState, event: PlanEvent) -> None:
    """Each (state, event) either leads where the table says or is a conflict that says what is possible."""
    to = PLAN_TRANSITIONS.get((state, event))
    if to is not None:
        assert next_state("p1", state, event) is to
        return
    with pytest.raises(Conflict, match=f"plan p1 is {state}") as refusal:
        next_state("p1", state, event)
    assert refusal.value.details == {"field": "state", "actual": state.value}
    assert ("possible now" in refusal.value.hint) or ("stays so" in refusal.value.hint)


def test_an_ended_plan_never_runs_again() -> None:
    """Nothing leads out of completed and aborted."""
    ended = {PlanState.COMPLETED, PlanState.ABORTED}
    assert all(to is source for (source, _), to in PLAN_TRANSITIONS.items() if source in ended)


def test_open_outcomes_are_outcomes() -> None:
    """Two of the outcomes are open, the others are final."""
    assert set(OUTCOMES) > OPEN
    assert len(OUTCOMES) == 9


def test_the_hash_is_over_the_ids_joined_by_newlines() -> None:
    """As the contract has it, whatever the number of members."""
    ids = sorted(f"id-{n}" for n in range(50))
    for count in (0, 1, 2, 50):
        assert members_sha256(ids[:count]) == hashlib.sha256("\n".join(ids[:count]).encode()).hexdigest()
    assert members_sha256(["a", "b"]) != members_sha256(["ab"])
