"""A plan's pace: never faster than its envelope, and not slower than it need be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.domain.envelope import Envelope, Pace

RATES = st.floats(0.05, 5_000)
TURNS = st.lists(st.tuples(st.integers(-1_000, 3_000), st.booleans()), max_size=60)


def run(envelope: Envelope, turns: list[tuple[int, bool]]) -> list[tuple[int, int]]:
    """(time, sent) of each turn; a turn is the milliseconds since the last and whether it may send."""
    pace, now, sent = Pace(1.0, 0, 0), 0, []
    for elapsed, wanted in turns:
        now += elapsed
        pace = pace.refill(now, envelope)
        granted = pace.grant(envelope, 0) if wanted else 0
        pace = pace.spend(granted)
        sent.append((now, granted))
    return sent


@given(RATES, st.integers(0, 60), TURNS)
def test_never_more_than_the_rate_and_one_burst(
    rate: float, ramp: int, turns: list[tuple[int, bool]]
) -> None:
    """Over any stretch, whatever the clock does, no more is sent than the rate gives and a burst."""
    envelope = Envelope(rate, 1_000_000, ramp)
    sent = run(envelope, turns)
    assert all(count <= max(1, rate / 10) for _, count in sent)
    for first in range(len(sent)):
        forward = taken = 0
        for index in range(first, len(sent)):
            if index > first:
                forward += max(0, sent[index][0] - sent[index - 1][0])
            taken += sent[index][1]
            assert taken <= rate * (forward + 50) / 1000 + max(1.0, rate / 10) + 1e-6


@given(RATES, st.integers(0, 40))
def test_a_turn_that_comes_late_loses_nothing(rate: float, late_ms: int) -> None:
    """Who comes when `wait_ms` says, or up to 50 ms later, sends the whole rate."""
    envelope, now, sent = Envelope(rate, 1_000_000), 0, 0
    pace = Pace(1.0, 0, 0)
    for _ in range(200):
        granted = pace.grant(envelope, 0)
        pace, sent = pace.spend(granted), sent + granted
        now += pace.wait_ms(envelope, 0) + late_ms
        pace = pace.refill(now, envelope)
    at_best = rate * now / 1000
    slowest = 1000 / (100 + late_ms) * envelope.burst_at(0) / rate  # one burst a turn is the most there is
    assert sent >= min(1.0, slowest) * at_best * 0.98 - envelope.burst_at(0) - 1


def test_the_ramp_grows_evenly_from_a_tenth() -> None:
    """And a plan that was paused goes on where its ramp was."""
    envelope = Envelope(100, 1_000, ramp_seconds=10)
    assert [envelope.rate_at(ms) for ms in (0, 5_000, 10_000, 99_000)] == pytest.approx([10, 55, 100, 100])
    paused = Pace(0.0, 60_000, 5_000)  # an hour later
    assert Pace(0.0, 3_660_000, paused.running_ms).refill(3_660_100, envelope).running_ms == 5_100


@given(st.integers(0, 300), st.integers(1, 200), st.floats(0, 500))
def test_in_flight_is_never_passed(in_flight: int, most: int, tokens: float) -> None:
    """However full the bucket is."""
    granted = Pace(tokens, 0, 0).grant(Envelope(5_000, most), in_flight)
    assert 0 <= granted <= max(0, most - in_flight)


def test_a_long_absence_is_no_burst() -> None:
    """A server that was away for an hour sends a tenth of a second's rate when it is back."""
    envelope = Envelope(100, 1_000)
    assert Pace(0.0, 0, 0).refill(3_600_000, envelope).grant(envelope, 0) == 10
