"""What a handler receives, and what it may raise to say how the job ended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

GENERATION_HEADER = "redrive-generation"


class Reject(Exception):
    """Raised by a handler: this job can never be done. It becomes a dead letter at once."""


class RetryLater(Exception):
    """Raised by a handler: not now. ``after`` is the wait in seconds (None: the queue's backoff)."""

    def __init__(self, message: str = "retry later", *, after: float | None = None) -> None:
        super().__init__(message)
        if after is not None and after < 0:
            raise ValueError(f"after must be at least 0 seconds, got {after}")
        self.after = after


@dataclass(frozen=True, slots=True)
class Job:
    """One delivery of one job.

    ``key`` is the stable business key: hand it to providers as *their* idempotency key. ``payload`` is the
    JSON value (or the type that the worker was given). ``attempt`` (1-based) counts in the budget,
    ``delivery`` counts every lease for life and fences outside systems. ``previous`` tells how the last
    delivery ended (``lost``, ``nack``, ``released``, None). ``plan_id`` is the redrive plan that sent a
    message back from the dead letters, None for one that never was there. Instants are RFC 3339 text.
    """

    key: str
    payload: Any = field(repr=False)  # may hold personal data, and a job is easily logged
    message_id: str
    attempt: int
    delivery: int
    queue: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)  # as the payload
    enqueued_at: str | None = None
    lease_expires_at: str | None = None
    previous: str | None = None
    generation: int = 0
    consumer_id: str = ""
    message_group_id: str | None = None
    plan_id: str | None = None
    proof: Callable[[], bool] = field(default=lambda: True, repr=False, compare=False)

    def still_leased(self) -> bool:
        """Whether this delivery is certainly still ours: a long handler asks before it calls the outside."""
        return self.proof()

    @property
    def job_key(self) -> str:
        """``key``, under the name that the ledger and the contract use."""
        return self.key

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger that carries this job's key, message id and delivery."""
        fields = {"job_key": self.key, "message_id": self.message_id, "delivery": self.delivery}
        return logging.LoggerAdapter(logging.getLogger("redrive.job"), fields)


def generation_of(headers: dict[str, str] | None) -> int:
    """The repair's count that the relay wrote into the reserved header; 0 without it."""
    text = (headers or {}).get(GENERATION_HEADER, "0")
    return int(text) if text.isascii() and text.isdigit() else 0
