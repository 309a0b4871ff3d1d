"""The capacity estimate, against figures worked out by hand and a plan run step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.domain.envelope import Envelope, Pace
from redrive.domain.estimate import Measured, estimate

IDLE = Measured(service_seconds=0.25, arrivals_per_second=0, slots=1, peak_per_second=0)


def test_twelve_thousand_of_a_quarter_second_are_fifty_minutes() -> None:
    """For one worker, one after the other."""
    found = estimate(12_000, Envelope(5_000, 100_000), IDLE)
    assert found.serial_seconds == 3_000
    assert found.seconds_at_envelope == pytest.approx(3_000, rel=0.01)
    assert (found.spare_per_second, found.suggested_rate, found.bound) == (4.0, 3.2, "spare capacity")
    narrow = estimate(12_000, Envelope(100, 8), replace(IDLE, slots=16))
    assert (narrow.spare_per_second, narrow.suggested_rate, narrow.bound) == (64.0, 24.151, "max_in_flight")


@pytest.mark.parametrize(
    ("envelope", "seen", "seconds", "bound"),
    [
        (Envelope(10, 100), Measured(0.25, 8, 40, 32), 1_200, "rate_per_second"),
        (Envelope(1_000, 8), Measured(0.25, 0, 40, 32), 397.75, "max_in_flight"),
        (Envelope(1_000, 1_000), Measured(0.25, 8, 4, 32), 500, "spare capacity"),
        (Envelope(1_000, 1_000), Measured(0.25, 0, 4, 200, max_per_second=20), 600, "spare capacity"),
        (Envelope(1_000, 1_000), Measured(0.25, 0, 4, 200, max_in_flight=2), 1_500, "spare capacity"),
        (Envelope(10, 100), Measured(None, 0, 0, 0), 1_200, "rate_per_second"),
    ],
)
def test_the_narrowest_place_sets_the_pace(
    envelope: Envelope, seen: Measured, seconds: float, bound: str
) -> None:
    """Twelve thousand members through each kind of bottleneck."""
    found = estimate(12_000, envelope, seen)
    assert found.seconds_at_envelope == pytest.approx(seconds, rel=0.01)
    assert found.bound == bound


def test_consumers_that_are_full_never_finish() -> None:
    """No spare capacity: no time can be named, and the suggestion is not to redrive."""
    found = estimate(10, Envelope(), Measured(1.0, 5.0, 2, 4.0))
    assert (found.seconds_at_envelope, found.spare_per_second, found.suggested_rate) == (None, 0, 0)


def test_nothing_to_do_takes_no_time() -> None:
    """Also for consumers that are full."""
    assert estimate(0, Envelope(), Measured(1.0, 5.0, 2, 4.0)).seconds_at_envelope == 0


@given(st.integers(1, 3_000), st.floats(1, 500), st.integers(0, 60))
def test_the_time_is_that_of_a_plan_run_step_by_step(count: int, rate: float, ramp: int) -> None:
    """The envelope's own arithmetic, with its ramp, within two per cent and a burst."""
    envelope = Envelope(rate, 1_000_000, ramp)
    told = estimate(count, envelope, Measured(None, 0, 0, 0)).seconds_at_envelope
    assert told is not None
    pace, now, left = Pace(0.0, 0, 0), 0, count
    while left > 0:
        now += min(20, pace.wait_ms(envelope, 0))
        pace = pace.refill(now, envelope)
        granted = min(left, pace.grant(envelope, 0))
        pace, left = pace.spend(granted), left - granted
    slack = (envelope.burst_at(0) + 1) / envelope.rate_at(0)
    assert told == pytest.approx(now / 1000, rel=0.02, abs=slack)
