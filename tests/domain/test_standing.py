"""The contract's state of a message: one for every message, by what a consumer would get."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.domain.facts import Facts, Slot
from redrive.domain.standing import ANY, STANDINGS, NoStanding, Shown, Standing, shown
from tests.domain.test_decide import NOW, any_facts, facts


@given(any_facts(), st.booleans(), st.sampled_from([-1, 0, 1]))
def test_every_message_is_in_one_state(message: Facts, at_head: bool, later_ms: int) -> None:
    """Exactly one row of the table holds, that row is what is shown, and no filter leaves it out."""
    message.due_ms = NOW + later_ms
    holding = [name for name, each in STANDINGS.items() if each.holds(message, NOW, at_head=at_head)]
    assert holding == [shown(message, NOW, at_head=at_head)]
    assert ANY.holds(message, NOW, at_head=at_head)


@given(any_facts(), st.sampled_from([-1, 0, 1]))
def test_due_bounds_are_the_same_rule(message: Facts, later_ms: int) -> None:
    """A page's bounds on the due time let through what the row in hand says."""
    message.due_ms = NOW + later_ms
    for due in (None, True, False):
        after_ms, until_ms = Standing(due=due).due_bounds(NOW, 2**62)
        held = Standing(due=due).holds(message, NOW, at_head=True)
        assert (after_ms < message.due_ms <= until_ms) is held


@pytest.mark.parametrize(
    ("fields", "at_head", "state"),
    [
        ({"slot": Slot.READY}, True, "ready"),
        ({"slot": Slot.READY, "due_ms": NOW + 1}, True, "delayed"),
        ({"slot": Slot.IN_GROUP, "group_id": 7}, True, "ready"),
        ({"slot": Slot.IN_GROUP, "group_id": 7, "due_ms": NOW + 1}, True, "delayed"),
        ({"slot": Slot.IN_GROUP, "group_id": 7}, False, "waiting"),
        ({"slot": Slot.IN_GROUP, "group_id": 7, "due_ms": NOW + 1}, False, "waiting"),
        ({"slot": Slot.LEASED, "group_id": 7}, False, "leased"),
        ({"slot": Slot.LEASED, "dead": True}, True, "leased"),
        ({"slot": Slot.IN_GROUP, "group_id": 7, "dead": True}, False, "dead"),
        ({"slot": Slot.HELD, "dead": True}, True, "dead"),
    ],
)
def test_states(fields: dict[str, object], at_head: bool, state: str) -> None:
    """Each case by name."""
    assert shown(facts(**fields), NOW, at_head=at_head) == state


def test_every_name_has_its_row() -> None:
    """No other, and none is missing."""
    assert set(STANDINGS) == set(get_args(Shown))


def test_a_damaged_row_has_no_state() -> None:
    """A slot that there is not, or one that only dead letters have: named, not guessed."""
    with pytest.raises(NoStanding, match="slot 9"):
        shown(facts(slot=9), NOW, at_head=True)
    with pytest.raises(NoStanding, match="in no state"):
        shown(facts(slot=Slot.HELD), NOW, at_head=True)
