"""A queue's policy: every setting that decides about its messages, with the contract's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from redrive.domain import limits
from redrive.domain.backoff import RetryPolicy

FifoOnDead = Literal["block", "continue"]
RedrivePolicy = Literal["free", "review", "forbidden"]
#: What becomes of a failure by its fingerprint: ``retry`` as ever; ``reject`` a dead letter at once; ``hold``
#: that too, and no redrive takes it along that does not name it.
FingerprintPolicy = Literal["retry", "reject", "hold"]


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Effective settings of one queue. Durations in seconds; ``None`` means no limit."""

    max_retries: int = limits.MAX_RETRIES_DEFAULT
    retention_seconds: int = limits.RETENTION_SECONDS_DEFAULT
    visibility_timeout_default: float = limits.VISIBILITY_SECONDS_DEFAULT
    enable_priority: bool = False
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    fifo_on_dead: FifoOnDead = "block"
    content_deduplication: bool = False
    max_in_flight: int | None = None
    max_per_second: float | None = None
    max_lease_seconds: float = limits.LEASE_SECONDS_MAX_DEFAULT
    max_redrives: int = limits.MAX_REDRIVES_DEFAULT
    redrive_policy: RedrivePolicy = "free"
    require_receipt_handle: bool = False
    redact: tuple[str, ...] = ()

    def budget_spent(self, attempt: int) -> bool:
        """Whether a delivery that counted as ``attempt`` (1-based) was the last of its budget."""
        return attempt > self.max_retries

    def attempts_left(self, attempt: int) -> int:
        """Deliveries left in the budget after ``attempt`` of them."""
        return max(0, self.max_retries + 1 - attempt)


@dataclass(frozen=True, slots=True)
class Allowance:
    """A token bucket that holds at most one second of ``rate`` (and at least one): ``max_per_second``."""

    tokens: float
    at_ms: int

    def refill(self, now_ms: int, rate: float) -> Allowance:
        """The bucket at ``now_ms``; a clock that went back adds nothing."""
        elapsed = max(0, now_ms - self.at_ms)
        room = max(1.0, rate)
        return Allowance(min(room, self.tokens + elapsed * rate / 1000), now_ms)

    def wait_ms(self, rate: float) -> int:
        """Milliseconds until one token is there."""
        return 0 if self.tokens >= 1 else max(1, int((1 - self.tokens) * 1000 / rate) + 1)
