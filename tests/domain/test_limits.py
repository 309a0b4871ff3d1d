"""The limits make sense together."""

from __future__ import annotations

import re

import pytest

from redrive.domain import limits
from redrive.domain.policy import QueuePolicy

NAMES = [name for name in dir(limits) if name.isupper() and name not in ("KIB", "MIB")]


@pytest.mark.parametrize("stem", sorted({n.removesuffix("_MIN") for n in NAMES if n.endswith("_MIN")}))
def test_minimum_default_maximum(stem: str) -> None:
    """Where there is a minimum there is a maximum above it, and a default lies between."""
    low, high = getattr(limits, f"{stem}_MIN"), getattr(limits, f"{stem}_MAX", None)
    if high is not None:
        assert low < high
        assert low <= getattr(limits, f"{stem}_DEFAULT", low) <= high


def test_they_fit_together() -> None:
    """A full answer, a full batch and their envelope fit; a delay fits into the longest retention."""
    assert limits.BODY_BYTES_MAX <= limits.BATCH_BYTES_MAX < limits.REQUEST_BYTES_MAX
    assert limits.BODY_BYTES_MAX <= limits.CONSUME_BYTES_MAX
    assert limits.DELAY_SECONDS_MAX <= limits.RETENTION_SECONDS_MAX
    assert limits.DEAD_RETENTION_SECONDS <= limits.RETENTION_SECONDS_MAX
    assert limits.VISIBILITY_SECONDS_MAX <= limits.LEASE_SECONDS_MAX_DEFAULT
    assert limits.RETRY_BASE_SECONDS_DEFAULT <= limits.RETRY_MAX_SECONDS_DEFAULT


@pytest.mark.parametrize(
    ("length", "plain", "derived"), [(0, False, False), (1, True, True), (80, True, True), (81, False, False)]
)
def test_queue_names(length: int, plain: bool, derived: bool) -> None:
    """Names have 1 to 80 characters; only a derived dead-letter queue may have 84."""
    name = "q" * length
    assert bool(re.fullmatch(limits.QUEUE_NAME_PATTERN, name)) is plain
    assert bool(re.fullmatch(limits.DERIVED_QUEUE_NAME_PATTERN, name)) is derived
    assert re.fullmatch(limits.DERIVED_QUEUE_NAME_PATTERN, "q" * 80 + ".dlq")
    assert len("q" * 80 + ".dlq") == limits.DERIVED_QUEUE_NAME_CHARS_MAX


def test_a_policy_has_the_defaults() -> None:
    """A queue without settings has the defaults of the limits, and max_retries + 1 deliveries."""
    policy = QueuePolicy()
    assert policy.max_retries == limits.MAX_RETRIES_DEFAULT
    assert [policy.budget_spent(n) for n in (5, 6)] == [False, True]
    assert [policy.attempts_left(n) for n in (0, 5, 6, 7)] == [6, 1, 0, 0]
