"""Dates and instants of the settlement calendar: UTC days, Unix seconds, the text forms of reports."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def day_bounds(day: str) -> tuple[int, int]:
    """The first second of the UTC day ``YYYY-MM-DD`` and that of the next; ``ValueError`` when it is none."""
    if not _DATE.fullmatch(day):
        raise ValueError(f"{day[:40]!r} is not a date such as 2026-10-23")
    start = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
    return int(start.timestamp()), int((start + timedelta(days=1)).timestamp())


def day_before(day: str) -> str:
    """The UTC day before ``day``."""
    return (date.fromisoformat(day) - timedelta(days=1)).isoformat()


def day_of(created_s: int) -> str:
    """The UTC day of an instant in Unix seconds."""
    return datetime.fromtimestamp(created_s, UTC).date().isoformat()


def instant_text(created_s: int) -> str:
    """``2026-10-23 04:05:06``, as the provider's report prints ``created_utc``."""
    return datetime.fromtimestamp(created_s, UTC).isoformat(" ")[:19]


def instant_of(text: str) -> int:
    """Unix seconds of ``created_utc`` or ``updated_at``: a date and time, UTC unless an offset is given."""
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a time such as 2026-10-23 04:05:06") from None
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp())
