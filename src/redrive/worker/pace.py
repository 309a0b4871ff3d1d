"""How a loop behaves while something is broken: it comes back for ever, jittered, and says so seldom."""

from __future__ import annotations

import logging
import threading

from redrive import seams
from redrive.domain.backoff import RetryPolicy
from redrive.domain.errors import RedriveError, Unauthenticated
from redrive.transports import Unreachable

RECONNECT = RetryPolicy(base_seconds=0.2, factor=2.0, max_seconds=15.0)
LOG_EVERY_SECONDS = 10.0

Failure = (RedriveError, Unreachable)
"""What a transport raises when it has no answer to give."""


def repeatable(error: RedriveError | Unreachable) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(error, Unreachable) or error.retryable


class Pace:
    """Waits between failures of one loop; one loop uses it, from one thread."""

    def __init__(self, log: logging.Logger, what: str, stopping: threading.Event) -> None:
        self._log = log
        self._what = what
        self._stopping = stopping
        self._failures = 0
        self._unsaid = 0
        self._said_at: float | None = None

    def failed(self, error: Exception) -> bool:
        """Note a failure and wait; True when the worker is stopping."""
        self._failures += 1
        self._say(error)
        floor = getattr(error, "retry_after", None) or 0
        pause = floor + RECONNECT.delay_ms(self._failures, seams.draw()) / 1000
        return seams.wait(self._stopping, pause)

    def succeeded(self) -> None:
        """Start over, and tell once that it works again."""
        if self._failures:
            self._log.info("%s: works again after %d failures", self._what, self._failures)
        self._failures, self._unsaid, self._said_at = 0, 0, None

    def _say(self, error: Exception) -> None:
        now = seams.monotonic()
        if self._said_at is not None and now - self._said_at < LOG_EVERY_SECONDS:
            self._unsaid += 1
            return
        silent = f" ({self._unsaid} more like it)" if self._unsaid else ""
        hint = getattr(error, "hint", "")
        if isinstance(error, Unauthenticated):  # the server's hint speaks of headers
            hint = "REDRIVE_API_KEY, or the worker's api_key, must be a key of this server"
        told = f"{error} ({hint})" if hint else str(error)
        self._log.warning("%s: %s: %s%s", self._what, type(error).__name__, told, silent)
        self._said_at, self._unsaid = now, 0
