"""How fast a plan may go: its rate, its ramp, and how many members may be on their way at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from redrive.domain import limits

_RAMP_FROM = 0.1  # of the rate, when the ramp begins
_LATE_MS = 50  # how late a turn may come without any of the rate being lost


@dataclass(frozen=True, slots=True)
class Envelope:
    """``rate_per_second`` members a second, at most ``max_in_flight`` sent and unfinished; for the first
    ``ramp_seconds`` of running the rate grows evenly from a tenth."""

    rate_per_second: float = limits.PLAN_RATE_DEFAULT
    max_in_flight: int = limits.PLAN_IN_FLIGHT_DEFAULT
    ramp_seconds: float = 0.0

    def rate_at(self, running_ms: int) -> float:
        """Members a second after ``running_ms`` of running."""
        ramp_ms = self.ramp_seconds * 1000
        if running_ms >= ramp_ms:
            return self.rate_per_second
        return self.rate_per_second * (_RAMP_FROM + (1 - _RAMP_FROM) * max(0, running_ms) / ramp_ms)

    def burst_at(self, running_ms: int) -> int:
        """The most that may move at once: a tenth of a second's rate, and at least one."""
        return max(1, int(self.rate_at(running_ms) / 10))


@dataclass(frozen=True, slots=True)
class Pace:
    """The plan's token bucket, kept in its row so that a crash neither forgets nor doubles it.

    ``running_ms`` is how long the plan has run in all (pauses and outages do not count), as of ``at_ms``.
    """

    tokens: float
    at_ms: int
    running_ms: int

    def refill(self, now_ms: int, envelope: Envelope) -> Pace:
        """The bucket at ``now_ms``. A clock that went back adds nothing; however long nobody came, no more
        is waiting than a burst and what the rate gives in ``_LATE_MS``."""
        elapsed = max(0, now_ms - self.at_ms)
        running = self.running_ms + min(elapsed, limits.OUTAGE_GAP_MS)
        before, after = envelope.rate_at(self.running_ms), envelope.rate_at(running)
        earned = (before + after) / 2 * elapsed / 1000
        room = envelope.burst_at(running) + after * _LATE_MS / 1000
        return Pace(min(room, self.tokens + earned), now_ms, running)

    def grant(self, envelope: Envelope, in_flight: int) -> int:
        """How many members may be sent now."""
        room = envelope.max_in_flight - in_flight
        return max(0, min(int(self.tokens + 1e-9), envelope.burst_at(self.running_ms), room))

    def spend(self, sent: int) -> Pace:
        """The bucket after ``sent`` were sent."""
        return Pace(max(0.0, self.tokens - sent), self.at_ms, self.running_ms)

    def wait_ms(self, envelope: Envelope, in_flight: int) -> int:
        """Milliseconds until the bucket may hold what could go then: a burst, or less where fewer have
        room; at least 1."""
        rate, burst = envelope.rate_at(self.running_ms), envelope.burst_at(self.running_ms)
        wanted = max(1, min(burst, envelope.max_in_flight - in_flight))
        return max(1, math.ceil((wanted - self.tokens) * 1000 / rate))
