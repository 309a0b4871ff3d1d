"""How long a redrive takes, and how much of it the consumers can bear, from what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from redrive.domain.envelope import Envelope

# between a member's end and the next one's start: two commits, a round trip, perhaps a look by another node
TURN_SECONDS = 0.015
SUGGESTED_SHARE = 0.8  # of the spare capacity: live traffic keeps the rest


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of a queue: the mean service time in seconds (None: nothing was settled yet), arrivals a
    second, jobs that the consumers seen work on at once, the most settled in a second of late, and the
    queue's own limits (None: none).
    """

    service_seconds: float | None
    arrivals_per_second: float
    slots: int
    peak_per_second: float
    max_in_flight: int | None = None
    max_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """``serial_seconds``: one worker, one job at a time. ``seconds_at_envelope``: this envelope over these
    consumers. ``spare_per_second``: what they can do beside the arrivals; ``suggested_rate`` is below
    it, and below what ``max_in_flight`` lets through.
    None where nothing was measured that could tell. ``bound`` names what limits the pace."""

    count: int
    serial_seconds: float | None
    seconds_at_envelope: float | None
    spare_per_second: float | None
    suggested_rate: float | None
    bound: str


def estimate(count: int, envelope: Envelope, seen: Measured) -> Estimate:
    """Seconds and rates for ``count`` members."""
    service, capacity = seen.service_seconds, _capacity(seen)
    spare = None if capacity is None else max(0.0, capacity - seen.arrivals_per_second)
    bounds = [("rate_per_second", envelope.rate_per_second)]
    through = [envelope.max_in_flight / (service + TURN_SECONDS)] if service else []
    bounds += [("max_in_flight", each) for each in through]
    if spare is not None:
        bounds.append(("spare capacity", spare))
    bound, pace = min(bounds, key=lambda each: each[1])
    seconds = None if pace <= 0 and count else _at(count, pace, envelope) + (service or 0.0) * bool(count)
    return Estimate(
        count,
        None if service is None else round(count * service, 3),
        None if seconds is None else round(seconds, 3),
        None if spare is None else round(spare, 3),
        None if spare is None else round(min(spare, *through) * SUGGESTED_SHARE, 3),
        bound,
    )


def _capacity(seen: Measured) -> float | None:
    """Jobs a second that the consumers can settle: what they showed, or one at a time each if that is more,
    within the queue's own limits."""
    if seen.service_seconds is None or not seen.slots:
        return None
    capacity = max(seen.peak_per_second, seen.slots / max(seen.service_seconds, 1e-3))
    if seen.max_in_flight is not None:
        capacity = min(capacity, seen.max_in_flight / max(seen.service_seconds, 1e-3))
    if seen.max_per_second is not None:
        capacity = min(capacity, seen.max_per_second)
    return capacity


def _at(count: int, pace: float, envelope: Envelope) -> float:
    """Seconds to send ``count`` at ``pace``, with the ramp before it."""
    if not count:
        return 0.0
    ramp, top = envelope.ramp_seconds, envelope.rate_per_second
    if ramp <= 0:
        return count / pace
    low = envelope.rate_at(0)
    # the rate grows evenly from low to top over the ramp, and never beyond the pace
    reach = ramp * max(0.0, min(1.0, (pace - low) / (top - low))) if top > low else 0.0
    during = low * reach + (top - low) / ramp * reach * reach / 2
    if during >= count:
        slope = (top - low) / ramp
        return (math.sqrt(low * low + 2 * slope * count) - low) / slope
    return reach + (count - during) / pace
