"""The token bucket of a key."""

from __future__ import annotations

import pytest

from redrive.api import rates
from redrive.api.rates import Rates
from redrive.domain.errors import RateLimited


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """The monotonic clock of the buckets."""
    made = _Clock()
    monkeypatch.setattr(rates, "monotonic", made)
    return made


def _taken(bucket: Rates, key: str, tries: int) -> int:
    taken = 0
    for _ in range(tries):
        try:
            bucket.take(key)
        except RateLimited:
            break
        taken += 1
    return taken


def test_a_burst_and_then_the_rate(clock: _Clock) -> None:
    """The burst is full at first and refills at the rate, never above itself."""
    bucket = Rates(10, 20)
    assert _taken(bucket, "k", 100) == 20
    clock.now += 1
    assert _taken(bucket, "k", 100) == 10
    clock.now += 3_600
    assert _taken(bucket, "k", 100) == 20


def test_the_wait_is_whole_seconds_and_enough(clock: _Clock) -> None:
    """After Retry-After the same request passes."""
    bucket = Rates(0.3, 1)
    bucket.take("k")
    with pytest.raises(RateLimited) as refused:
        bucket.take("k")
    assert refused.value.retry_after == 4
    clock.now += 4
    bucket.take("k")


def test_headers_tell_the_policy_and_what_is_left(clock: _Clock) -> None:
    """As the RateLimit header fields have it."""
    bucket = Rates(10, 20)
    bucket.take("k")
    assert dict(bucket.headers("k")) == {
        b"ratelimit-policy": b'"key";q=20;w=2',
        b"ratelimit": b'"key";r=19;t=1',
    }


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch, clock: _Clock) -> None:
    """The longest unused bucket goes first."""
    monkeypatch.setattr(rates, "_BUCKETS_MAX", 2)
    bucket = Rates(1, 1)
    for key in ("a", "b", "c"):
        bucket.take(key)
    bucket.take("a")  # forgotten, so full again
    with pytest.raises(RateLimited):
        bucket.take("c")
    assert clock.now == 100.0
