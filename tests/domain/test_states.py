"""The transition table."""

from __future__ import annotations

import itertools

import pytest

from redrive.domain.states import TRANSITIONS, Event, IllegalTransition, State, check


def test_what_is_not_in_the_table_is_a_bug() -> None:
    """Every combination outside the table raises; every one in it passes."""
    for source, event, to in itertools.product(State, Event, State):
        if to in TRANSITIONS.get((source, event), ()):
            assert check(source, event, to) is to
        else:
            with pytest.raises(IllegalTransition):
                check(source, event, to)


def test_gone_is_the_end() -> None:
    """Nothing leads away from gone or back to none, and every other state can be reached and left."""
    sources = {source for source, _ in TRANSITIONS}
    targets = {to for found in TRANSITIONS.values() for to in found}
    assert State.GONE not in sources
    assert State.NONE not in targets
    assert sources == set(State) - {State.GONE}
    assert targets == set(State) - {State.NONE}
