"""Instants on the wire: RFC 3339 in UTC with milliseconds, and back to milliseconds since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from redrive.domain.errors import InvalidRequest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # the seconds of the years 1 and 9999
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    whole = min(max(seconds, _FIRST), _LAST)  # a damaged row's time must not hide what it belongs to
    return (_EPOCH + timedelta(seconds=whole)).isoformat()[:19]


def rfc3339(at_ms: int) -> str:
    """``at_ms`` (milliseconds since the epoch) as ``2026-10-23T02:00:00.000Z``; the nearest that a calendar
    has."""
    seconds, millis = divmod(at_ms, 1000)
    return f"{_second(seconds)}.{millis:03d}Z"


def rfc3339_or_none(at_ms: int | None) -> str | None:
    """As :func:`rfc3339`; None stays None."""
    return None if at_ms is None else rfc3339(at_ms)


def instant_ms(text: str, field: str = "time") -> int:
    """Milliseconds since the epoch of RFC 3339 ``text``; InvalidRequest names ``field`` when it is none."""
    # an unescaped "+" of a query string arrives as a space
    plain = text[:-6] + "+" + text[-5:] if len(text) > 6 and text[-6] == " " else text
    if _DATE_TIME.fullmatch(plain):
        whole, fraction, _ = _parts(plain)
        try:
            parsed = datetime.fromisoformat(whole).astimezone(UTC)
        except (
            ValueError,
            OverflowError,
        ):  # the latter: no year of four digits in UTC, so never written back
            pass
        else:
            return (parsed - _EPOCH) // timedelta(milliseconds=1) + int((fraction + "000")[:3])
    raise InvalidRequest(
        f"{field} must be an RFC 3339 time, got {text[:60]!r}",
        hint="Like 2026-10-23T02:00:00.000Z.",
        details={"field": field, "actual": text[:60]},
    )


def _parts(text: str) -> tuple[str, str, str]:
    zone = text[-1] if text[-1] in "Zz" else text[-6:]
    body = text[: -len(zone)]
    whole, _, fraction = body.partition(".")
    return whole.replace(" ", "T").upper() + ("+00:00" if zone in "Zz" else zone), fraction, zone


def plain(value: float) -> float:
    """A whole number as an integer, so that the wire says 30 and not 30.0: clients may read it into one."""
    return int(value) if value == int(value) else value


def seconds(milliseconds: int) -> float:
    """Seconds, on the wire an integer where they are whole."""
    return plain(milliseconds / 1000)
