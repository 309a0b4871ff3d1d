"""The allowance of max_per_second."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redrive.domain.policy import Allowance


@given(st.floats(0.01, 1e4), st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 50)), max_size=40))
def test_never_faster_than_the_rate(rate: float, steps: list[tuple[int, int]]) -> None:
    """Over any stretch no more is let through than the rate, and the second's worth held at its start."""
    held, now, taken = Allowance(1.0, 0), 0, 0
    for elapsed, wanted in steps:
        now += elapsed
        held = held.refill(now, rate)
        granted = min(wanted, int(held.tokens))
        taken += granted
        held = Allowance(held.tokens - granted, now)
        assert taken <= max(1.0, rate) + now * rate / 1000 + 1e-6


@given(st.floats(0.01, 1e4), st.floats(0, 1, exclude_max=True))
def test_the_wait_is_enough(rate: float, tokens: float) -> None:
    """After the time that `wait_ms` names there is a token; a clock that went back adds none."""
    held = Allowance(tokens, 1_000)
    assert held.refill(1_000 + held.wait_ms(rate), rate).tokens >= 1 - 1e-9
    assert held.refill(0, rate).tokens == tokens
