"""Service times as counts in buckets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.domain.histogram import bucket, percentile

TIMES = st.integers(0, 43_200_000)


@given(TIMES, TIMES)
def test_buckets_keep_the_order(one: int, other: int) -> None:
    """A longer time is never in a lower bucket."""
    low, high = sorted((one, other))
    assert 0 <= bucket(low) <= bucket(high)


@given(st.integers(100, 43_200_000))
def test_a_bucket_tells_the_time(ms: int) -> None:
    """What a bucket stands for is within ten percent of what was put in."""
    told = percentile({bucket(ms): 1}, 0.5)
    assert told == pytest.approx(ms, rel=0.1)


@given(st.dictionaries(st.integers(0, 100), st.integers(1, 1000), min_size=1))
def test_percentiles_keep_the_order(counts: dict[int, int]) -> None:
    """p50 ≤ p95 ≤ p99."""
    p50, p95, p99 = (percentile(counts, share) for share in (0.5, 0.95, 0.99))
    assert p50 is not None
    assert p95 is not None
    assert p99 is not None
    assert p50 <= p95 <= p99


def test_nothing_counted() -> None:
    """Without counts there is no percentile, and a clock that went back is a time of zero."""
    assert percentile({}, 0.5) is None
    assert bucket(-5) == 0
