"""When a plan stops itself: rules over what its members and its queue show, and the numbers that they saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from redrive.domain import limits

SAMPLE_MIN = 10  # verdicts in the window before a share of them means something


@dataclass(frozen=True, slots=True)
class AbortRules:
    """``None`` switches a rule off. Seconds, milliseconds or a share, as the names say.

    ``same_fingerprint``: a member came back rejected with the fingerprint that it had died of.
    ``failure_ratio``: failed deliveries of members against all their verdicts, over ``window_seconds``.
    ``oldest_ready_age_seconds``: the queue's oldest ready message is older, and older than when the plan
    began to run, although consumers are at work. ``service_time_p95_ms`` and ``dead_growth_per_minute``
    are of the whole queue, over the window.
    """

    same_fingerprint: bool = True
    failure_ratio: float | None = limits.PLAN_FAILURE_RATIO_DEFAULT
    window_seconds: int = limits.PLAN_WINDOW_SECONDS_DEFAULT
    oldest_ready_age_seconds: float | None = None
    service_time_p95_ms: float | None = None
    dead_growth_per_minute: float | None = None


@dataclass(frozen=True, slots=True)
class Readings:
    """What a plan's members and its queue show at one moment.

    ``returned`` counts members that were rejected with the fingerprint they had died of, ``returned_id`` is
    one of them; ``succeeded`` and ``failed`` are members' verdicts within the window. Ages in seconds, None
    where there is nothing to measure; ``ready_age_at_start`` is the age when the plan last began to run.
    """

    returned: int = 0
    returned_id: str | None = None
    returned_fingerprint: str | None = None
    succeeded: int = 0
    failed: int = 0
    consumers: int = 0
    ready_age_seconds: float = 0.0
    ready_age_at_start: float = 0.0
    service_time_p95_ms: float | None = None
    dead_per_minute: float = 0.0


@dataclass(frozen=True, slots=True)
class Fired:
    """A rule that stopped a plan: its name, its limit, what was seen, and the sentence for a person."""

    rule: str
    limit: float
    seen: float
    sentence: str


def fired(rules: AbortRules, seen: Readings) -> Fired | None:
    """The first rule that is broken, or None."""
    return next((stop for rule in _RULES for stop in rule(rules, seen)), None)


def _same_fingerprint(rules: AbortRules, seen: Readings) -> Iterator[Fired]:
    if rules.same_fingerprint and seen.returned:
        yield Fired(
            "same_fingerprint", 0, seen.returned,
            f"{seen.returned} redriven message(s) were rejected with the fingerprint that they had died of, "
            f"{seen.returned_id} with {seen.returned_fingerprint}",
        )  # fmt: skip


def _failure_ratio(rules: AbortRules, seen: Readings) -> Iterator[Fired]:
    verdicts = seen.failed + seen.succeeded
    if rules.failure_ratio is None or verdicts < SAMPLE_MIN:
        return
    ratio = seen.failed / verdicts
    if ratio >= rules.failure_ratio:
        yield Fired(
            "failure_ratio", rules.failure_ratio, round(ratio, 4),
            f"{seen.failed} of {verdicts} verdicts of the last {rules.window_seconds} s are failures",
        )  # fmt: skip


def _ready_age(rules: AbortRules, seen: Readings) -> Iterator[Fired]:
    limit, age = rules.oldest_ready_age_seconds, seen.ready_age_seconds
    if limit is not None and seen.consumers and age > limit and age > seen.ready_age_at_start:
        yield Fired(
            "oldest_ready_age_seconds", limit, round(age, 3),
            f"the oldest ready message is {age:.1f} s old and was {seen.ready_age_at_start:.1f} s old when "
            f"the plan began to run, with {seen.consumers} consumer(s) at work",
        )  # fmt: skip


def _service_time(rules: AbortRules, seen: Readings) -> Iterator[Fired]:
    limit, p95 = rules.service_time_p95_ms, seen.service_time_p95_ms
    if limit is not None and p95 is not None and p95 > limit:
        yield Fired(
            "service_time_p95_ms", limit, p95,
            f"95 % of the jobs of the last {rules.window_seconds} s took up to {p95:g} ms",
        )  # fmt: skip


def _dead_growth(rules: AbortRules, seen: Readings) -> Iterator[Fired]:
    limit = rules.dead_growth_per_minute
    if limit is not None and seen.dead_per_minute > limit:
        yield Fired(
            "dead_growth_per_minute", limit, round(seen.dead_per_minute, 2),
            f"{seen.dead_per_minute:.1f} messages a minute became dead letters",
        )  # fmt: skip


_RULES: tuple[Callable[[AbortRules, Readings], Iterator[Fired]], ...] = (
    _same_fingerprint, _failure_ratio, _ready_age, _service_time, _dead_growth,
)  # fmt: skip
