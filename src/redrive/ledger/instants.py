"""Instants that a window or a deadline is made of: timezone-aware outside, whole microseconds since the epoch
inside, so that nothing is rounded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from redrive.domain.errors import InvalidRequest

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def micros(value: Any, field: str) -> int:
    """``value`` in microseconds since the epoch, exactly; InvalidRequest names ``field`` unless it is a
    timezone-aware datetime."""
    if not isinstance(value, datetime):
        raise InvalidRequest(f"{field} must be a timezone-aware datetime, got {type(value).__name__} {value}")
    if value.utcoffset() is None:
        raise InvalidRequest(
            f"{field} must be a timezone-aware datetime, got {value.isoformat()} without a zone",
            hint="datetime.now(UTC), or datetime(…, tzinfo=ZoneInfo(…))",
        )
    return (value - EPOCH) // _MICROSECOND


def instant(value: Any) -> datetime:
    """The instant in UTC of microseconds since the epoch."""
    return EPOCH + timedelta(microseconds=int(value))


def shown(value: Any) -> str:
    """:func:`instant` as text, for errors."""
    return instant(value).isoformat()
