"""Backoff with full jitter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redrive.domain import limits
from redrive.domain.backoff import RetryPolicy

LONG = st.floats(0, 2**40)  # seconds; far above every limit


DRAWS = st.floats(0, 1, exclude_max=True)


@given(base=LONG, factor=st.floats(1, 1e6), top=LONG, attempt=st.integers(0, 10**6), draw=DRAWS)
def test_never_above_the_ceiling(base: float, factor: float, top: float, attempt: int, draw: float) -> None:
    """However long the time-outs and however many attempts, a wait is a whole number within bounds (K3)."""
    policy = RetryPolicy(base, factor, top)
    wait = policy.delay_ms(attempt, draw)
    assert isinstance(wait, int)
    assert 0 <= wait <= policy.ceiling_seconds(attempt) * 1000 <= top * 1000


@given(attempt=st.integers(1, 10**6))
def test_the_ceiling_grows(attempt: int) -> None:
    """A later attempt never waits less, and the highest wait is the policy's maximum, also past overflow."""
    policy = RetryPolicy()
    assert policy.ceiling_seconds(attempt) <= policy.ceiling_seconds(attempt + 1)
    assert policy.ceiling_seconds(10**6) == limits.RETRY_MAX_SECONDS_DEFAULT


def test_above_32_bits() -> None:
    """Thirty days and more are not cut to 32 bits of milliseconds (K3)."""
    days = 60 * 86_400.0
    assert RetryPolicy(base_seconds=days, max_seconds=days, jitter=False).delay_ms(1, 0.0) == 5_184_000_000


def test_no_wait_stays_no_wait() -> None:
    """A base of zero is zero at every attempt, also where the factor's power overflows."""
    assert RetryPolicy(base_seconds=0, factor=10).ceiling_seconds(10_000) == 0


def test_jitter_spreads_and_can_be_turned_off() -> None:
    """The draw decides where between zero and the ceiling; without jitter it is the ceiling."""
    assert [RetryPolicy(8, 2, 900).delay_ms(2, draw) for draw in (0.0, 0.5, 0.999)] == [0, 8_000, 15_984]
    assert RetryPolicy(8, 2, 900, jitter=False).delay_ms(2, 0.5) == 16_000
