"""How long a failed message waits: exponential backoff with full jitter.

Full jitter (a uniform draw from zero to the exponential ceiling) keeps a fleet that failed together from
coming back together.
"""

from __future__ import annotations

from dataclasses import dataclass

from redrive.domain import limits


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A queue's backoff. ``base_seconds`` and ``max_seconds`` in seconds, ``factor`` at least 1."""

    base_seconds: float = limits.RETRY_BASE_SECONDS_DEFAULT
    factor: float = limits.RETRY_FACTOR_DEFAULT
    max_seconds: float = limits.RETRY_MAX_SECONDS_DEFAULT
    jitter: bool = True

    def ceiling_seconds(self, attempt: int) -> float:
        """The longest wait after failed attempt number ``attempt`` (1-based), in seconds."""
        try:
            grown = self.base_seconds * self.factor ** max(0, attempt - 1)
        except OverflowError:
            return self.max_seconds if self.base_seconds else 0.0
        return min(self.max_seconds, grown)

    def delay_ms(self, attempt: int, draw: float) -> int:
        """The wait after failed attempt ``attempt``, in milliseconds; ``draw`` is uniform in [0, 1)."""
        ceiling = self.ceiling_seconds(attempt) * 1000
        return int(ceiling * draw) if self.jitter else int(ceiling)
