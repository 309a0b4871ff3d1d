"""When a request may be sent again, and how long to wait before."""

from __future__ import annotations

from redrive.domain.backoff import RetryPolicy
from redrive.domain.errors import RedriveError
from redrive.transports.port import Unreachable
from redrive.transports.routing import HANDLE_FENCED, Route

BACKOFF = RetryPolicy(base_seconds=0.1, factor=2.0, max_seconds=5.0)


class Misdirected(Unreachable):
    """The other side speaks TLS and we do not, or the reverse, or we do not trust it: it stays like that.

    Nothing was understood, let alone done.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


def harmless(route: Route, *, keyed: bool) -> bool:
    """Whether sending the request twice has the effect of sending it once."""
    if route.method in ("GET", "DELETE") or route.capability_id in HANDLE_FENCED:
        return True
    return route.idempotent and (keyed or not route.records_key)


def delay_seconds(
    failure: RedriveError | Unreachable, *, attempt: int, twice: bool, draw: float
) -> float | None:
    """Seconds to wait before the next try after failed try ``attempt`` (1-based), or None: give up.

    ``twice``: a repetition is harmless although the first try may have had its effect. A ``Retry-After`` is
    a floor, and jitter comes on top of it, so that a fleet does not come back together.
    """
    if isinstance(failure, Misdirected):
        return None
    jittered = BACKOFF.delay_ms(attempt, draw) / 1000
    if isinstance(failure, Unreachable):
        return jittered if twice or not failure.sent else None
    if not failure.retryable:
        return None
    refused_undone = failure.http_status in (429, 503)  # by contract, nothing was done
    if not (twice or refused_undone):
        return None
    return (failure.retry_after or 0) + jittered
