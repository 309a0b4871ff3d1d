"""The abort rules: each fires at its limit, says its numbers, and is silent when it is off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from redrive.domain.abort import SAMPLE_MIN, AbortRules, Readings, fired

OFF = AbortRules(same_fingerprint=False, failure_ratio=None)
QUIET = Readings()
RETURNED = replace(QUIET, returned=1, returned_id="m", returned_fingerprint="f")
AGED = replace(QUIET, ready_age_seconds=61, consumers=1, ready_age_at_start=10)
CASES = [
    (replace(OFF, same_fingerprint=True), RETURNED, QUIET),
    (replace(OFF, failure_ratio=0.5), Readings(failed=5, succeeded=5), Readings(failed=4, succeeded=6)),
    (replace(OFF, oldest_ready_age_seconds=60), AGED, replace(AGED, ready_age_seconds=60)),
    (replace(OFF, service_time_p95_ms=9), Readings(service_time_p95_ms=9.1), Readings(service_time_p95_ms=9)),
    (replace(OFF, dead_growth_per_minute=5), Readings(dead_per_minute=5.1), Readings(dead_per_minute=5)),
]


@pytest.mark.parametrize(("rules", "broken", "kept"), CASES)
def test_a_rule_fires_beyond_its_limit_and_only_there(
    rules: AbortRules, broken: Readings, kept: Readings
) -> None:
    """With its name and its numbers; switched off it never fires."""
    stop = fired(rules, broken)
    assert stop is not None
    assert getattr(rules, stop.rule) is not None
    assert (
        str(round(stop.seen)) in stop.sentence
        or str(stop.seen) in stop.sentence
        or "verdicts" in stop.sentence
    )
    assert fired(rules, kept) is None
    assert fired(OFF, broken) is None


def test_the_defaults_are_the_contracts() -> None:
    """The same permanent fingerprint at once, or half failing over a minute; nothing else."""
    rules = AbortRules()
    assert (rules.same_fingerprint, rules.failure_ratio, rules.window_seconds) == (True, 0.5, 60)
    assert (rules.oldest_ready_age_seconds, rules.service_time_p95_ms, rules.dead_growth_per_minute) == (
        None,
    ) * 3


def test_one_failure_is_no_ratio() -> None:
    """A first transient failure of one of a few members does not stop a plan."""
    few = Readings(failed=SAMPLE_MIN - 1)
    assert fired(AbortRules(), few) is None
    assert fired(AbortRules(), replace(few, failed=SAMPLE_MIN)) is not None


def test_an_old_backlog_alone_is_no_reason() -> None:
    """It must have grown older under the plan, and consumers must be at work: without them nothing can."""
    rules = replace(OFF, oldest_ready_age_seconds=60)
    old = Readings(ready_age_seconds=500, ready_age_at_start=600, consumers=3)
    assert fired(rules, old) is None
    assert fired(rules, replace(old, ready_age_at_start=400)) is not None
    assert fired(rules, replace(old, ready_age_at_start=400, consumers=0)) is None
